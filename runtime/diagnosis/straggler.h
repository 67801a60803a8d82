// Finds the ranks that hold the others up. Online (the last steps, every few steps) and offline (a whole run) the same
// code on the same rows. Names nobody when nobody stands out.
//
// Per rank and kind of local work, two tests: is the median step later than the peers' (steady), and are there more
// outlying steps than chance deals out (every k-th step, now and then)? Benjamini-Hochberg holds the false alarms over
// ranks x kinds x tests; what is left must also cost the job something, by replay.
#pragma once
#include <span>

#include "runtime/diagnosis/device_facts.h"
#include "runtime/diagnosis/verdict.h"
#include "runtime/diagnosis/window.h"

namespace drivetrain {

struct DetectorOptions {
  double false_alarms = 0.01;     // expected share of false ones among the findings, before costs are looked at
  double smallest_effect = 0.03;  // of the step: below that, ranks differ in every healthy job (clocks, placement)
};

// Fewer steps tell a fault from chance only when it is enormous.
constexpr std::size_t kFewestSteps = 10;
// A trailing window that shows a new steady fault after eleven of its steps.
constexpr std::size_t kOnlineSteps = 20;

// Throws kData when the ranks hold different steps. `devices`: by world rank, or empty.
Diagnosis judge(const Window& window, const RunFacts& facts = {}, std::span<const DeviceFacts> devices = {},
                const DetectorOptions& options = {});

// A long run in pieces of about `piece` steps, so that a fault that came and went is seen; verdicts of one rank and cause
// are joined, their cost spread over all steps of the run. Victim and evidence are those of the worst piece.
Diagnosis judge_run(const Window& window, const RunFacts& facts = {}, std::size_t piece = 50,
                    std::span<const DeviceFacts> devices = {}, const DetectorOptions& options = {});

}  // namespace drivetrain
