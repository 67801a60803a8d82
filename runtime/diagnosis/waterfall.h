// From the machine's peak to what the job achieved: each loss in time and in points of MFU. Sums exactly, as printed:
// shares are whole microseconds and thousandths of a point, rounded so that they add up (largest remainder).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/diagnosis/verdict.h"
#include "runtime/diagnosis/window.h"

namespace drivetrain {

enum class Loss : std::uint8_t {
  kRecompute,
  kMatrixBelowPeak,  // matrix products and attention: their time beyond what the model's FLOPs take at peak
  kMemoryBound,      // norms, pointwise, embedding, loss
  kHostGap,
  kTpTransfer,
  kDpTransfer,
  kWorldTransfer,
  kWaiting,  // one row per culprit
  kData,
  kCopy,
  kOptimizer,
  kCheckpoint,
  kEval,
  kOther
};
const char* name(Loss loss);

struct WaterfallRow {
  Loss loss = Loss::kOther;
  int culprit = -1;               // kWaiting: world rank waited for; -1: unnamed
  std::int64_t us = 0;            // per step, mean over ranks
  std::int64_t milli_points = 0;  // 1000 = one point of MFU
  std::string label() const;
};

struct Waterfall {
  std::int64_t step_us = 0;
  std::int64_t ideal_us = 0;               // the model's FLOPs at peak; 0 without a peak
  std::int64_t achieved_milli_points = 0;  // MFU
  std::vector<WaterfallRow> rows;  // in the order of Loss; ideal_us + rows = step_us, achieved + rows = 100,000
};

// Mean of all ranks and steps of the window. `model_flops`: of one step, all ranks together. Without a peak, matrix
// products count whole and the points are shares of the step. A measured time below the ideal makes a negative row: the
// peak is too low.
Waterfall waterfall(const Window& window, double model_flops, std::optional<double> peak_flops_per_rank);

// How far each operator group is from what bounds it.
struct RooflineRow {
  OpClass op = OpClass::kGemm;
  double ms = 0;                            // per step, mean over ranks
  double flops_per_byte = 0;                // arithmetic intensity, against least memory traffic
  double flops_per_s = 0, bytes_per_s = 0;  // achieved, of one rank
  bool compute_bound = false;               // intensity above the machine's balance
  double share_of_bound = 0;                // achieved over what the bound allows
};
// Groups that ran. Peaks of one rank, both positive.
std::vector<RooflineRow> roofline(const Window& window, double peak_flops, double peak_bytes_per_s);

// What to change, by the time it would give back at most.
struct Change {
  std::string what;  // names the config key
  std::string why;   // the loss it addresses
  double gain_ms = 0;
  std::optional<double> mfu_points;
};
// The most worthwhile first, at most `count`. Verdicts of the same window count with their replayed cost.
std::vector<Change> changes_to_try(const Waterfall& waterfall, const Diagnosis& diagnosis, const Window& window,
                                   const RunFacts& facts, std::size_t count = 3);

}  // namespace drivetrain
