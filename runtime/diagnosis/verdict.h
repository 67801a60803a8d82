// What a diagnosis says: who holds the job up, with what, since when, at which cost, and what to do about it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ledger/step_record.h"

namespace drivetrain {

enum class Cause : std::uint8_t {
  kData,             // waits for its loader
  kCopy,             // host to device copies
  kUnequalWork,      // more or longer sequences, or more heads, than the mean
  kCoreContention,   // ready to run, but others have its core
  kStopped,          // neither running nor ready: stopped, swapped out, sleeping
  kMemoryBandwidth,  // memory-bound operators slowed more than matrix products
  kSlowDevice,       // all operators slowed alike: clock, heat
  kHostGap,          // host code between operators
  kCheckpoint,
  kEval,
  kOther
};
const char* name(Cause cause);         // "data_wait", "slow_device", ...
const char* plain_words(Cause cause);  // "reads its data", ... as in "rank 1 reads its data 310 ms per step"

enum class Pattern : std::uint8_t {
  kSteady,       // in most steps
  kPeriodic,     // every k-th step
  kOccasional,   // now and then, always this rank
  kChangingRank  // now this rank, now that one
};
const char* name(Pattern pattern);

struct Verdict {
  int rank = -1;  // -1: changing ranks
  std::string host;
  TimeClass phase = TimeClass::kOther;  // where most of the lateness was spent
  Cause cause = Cause::kOther;
  Pattern pattern = Pattern::kSteady;
  std::int64_t period = 0;          // kPeriodic: steps from one to the next
  std::int64_t first_step = 0;      // of the window, in which it was late
  double late_ms = 0;               // per affected step, over the peers
  double own_ms = 0, peers_ms = 0;  // per affected step, in the cause's class(es)
  double cost_ms = 0;               // per step of the job, by replay; the costs of a diagnosis sum to what all cost
  std::optional<double> mfu_points;
  int times_seen = 1;                 // looks in a row with this rank and cause (StragglerDetector)
  double confidence = 0;              // 0..1: 1 - p, times persistence, times agreement of the peers' own records
  std::vector<std::string> evidence;  // numbers as text, strongest first
  std::string blame;                  // path from the rank that waits most; empty: nobody recorded whom it waited for
  std::string action;
};

// Facts about the run that make an action concrete. Unknown ones stay empty.
struct RunFacts {
  std::optional<int> data_workers = {};
  std::optional<int> cores_per_rank = {}, threads_per_rank = {};
  std::optional<int> zero = {};           // parallel.zero
  std::string compute = {}, reduce = {};  // precision.compute, precision.reduce: "fp32", "bf16", ...
  std::optional<double> mfu = {};         // of the window, 0..1
};

// What to do about it, in one sentence that names the config key.
std::string action_for(const Verdict& verdict, int tp, const RunFacts& facts);

// The rank that loses most by waiting, in shares of its step.
struct Victim {
  int rank = -1;
  double busy = 0;     // thread ran or computed; a spinning wait is busy
  double waiting = 0;  // in collectives, for others
  int waits_for = -1;
  std::string collective;  // "dp all-reduce" or "dp collectives"
};

struct Diagnosis {
  std::vector<Verdict> verdicts;  // dearest first; empty: no straggler
  std::vector<std::string> notes;
  std::int64_t first_step = 0, last_step = 0;
  std::size_t steps = 0;
  double step_ms = 0;        // median
  double detectable_ms = 0;  // the least steady lateness of one rank that this window would have shown
  Victim victim;
  bool too_short = false;  // fewer steps than a verdict needs
};

// The answer in one sentence.
std::string first_line(const Diagnosis& diagnosis);

}  // namespace drivetrain
