// Which knob gives back how much of which loss (waterfall.h).
#include <algorithm>

#include "runtime/diagnosis/counterfactual.h"
#include "runtime/diagnosis/waterfall.h"

namespace drivetrain {
namespace {

// A loader that keeps ahead hides all of its time; nothing of it is inherent.
constexpr double kHidden = 1;
// bf16 instead of fp32 on the wire or in memory; twice the interval; twice the work per launch.
constexpr double kHalf = 0.5;
// The best that tuned large products reach: 78 to 87 % of the dense peak (ml-engineering's MAMF table, A100 to B200).
constexpr double kReachable = 0.8;
// Under 1 % of the step a change drowns in noise.
constexpr double kWorthTrying = 0.01;

}  // namespace

std::vector<Change> changes_to_try(const Waterfall& w, const Diagnosis& diagnosis, const Window& window,
                                   const RunFacts& facts, std::size_t count) {
  const double step_ms = static_cast<double>(w.step_us) * 1e-3;
  std::vector<Change> all;
  const auto propose = [&](std::string what, std::string why, double gain_ms) {
    Change c{.what = std::move(what), .why = std::move(why), .gain_ms = gain_ms, .mfu_points = {}};
    if (w.ideal_us > 0)
      c.mfu_points = mfu_points_gained(static_cast<double>(w.achieved_milli_points) * 1e-5, step_ms, gain_ms);
    if (gain_ms >= kWorthTrying * step_ms) all.push_back(std::move(c));
  };
  bool data_named = false;
  for (const Verdict& v : diagnosis.verdicts) {
    data_named |= v.cause == Cause::kData;
    propose(v.action,
            v.rank < 0 ? "pauses on changing ranks" : "rank " + std::to_string(v.rank) + " " + name(v.cause),
            v.cost_ms);
  }
  for (const WaterfallRow& row : w.rows) {
    const double ms = static_cast<double>(row.us) * 1e-3;
    const std::string why = row.label();
    switch (row.loss) {
      case Loss::kRecompute:
        propose("memory.recompute: none or selective, if memory allows (drivetrain plan tells)", why, ms);
        break;
      case Loss::kMatrixBelowPeak: {
        if (w.ideal_us == 0) break;
        const double ideal_ms = static_cast<double>(w.ideal_us) * 1e-3;
        propose("larger batch.micro; shapes that are multiples of 64", why, ms + ideal_ms - ideal_ms / kReachable);
        break;
      }
      case Loss::kMemoryBound:
        if (facts.compute == "fp32") propose("precision.compute: bf16", why, kHalf * ms);
        break;
      case Loss::kHostGap:
        propose("larger batch.micro: the same gaps for twice the work", why, kHalf * ms);
        break;
      case Loss::kTpTransfer:
        propose("halve parallel.tp, if memory allows", why, kHalf * ms);
        break;
      case Loss::kDpTransfer:
        if (facts.reduce == "fp32")
          propose("precision.reduce: bf16", why, kHalf * ms);
        else
          propose("twice the batch.global: one reduction for twice the work", why, kHalf * ms);
        break;
      case Loss::kData:
        if (!data_named)
          propose(facts.data_workers ? "raise data.workers from " + std::to_string(*facts.data_workers)
                                     : "raise data.workers",
                  why, kHidden * ms);
        break;
      case Loss::kOptimizer:
        if (facts.zero == 0)
          propose("parallel.zero: 1, each data rank updates its share", why, ms * (1 - 1.0 / window.dp));
        break;
      case Loss::kCheckpoint:
        propose("twice checkpoint.every", why, kHalf * ms);
        break;
      case Loss::kEval:
        propose("twice eval.every, or fewer eval.batches", why, kHalf * ms);
        break;
      case Loss::kWorldTransfer:
      case Loss::kWaiting:  // the verdicts' business
      case Loss::kCopy:
      case Loss::kOther:
        break;
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) { return a.gain_ms > b.gain_ms; });
  if (all.size() > count) all.resize(count);
  return all;
}

}  // namespace drivetrain
