#include "runtime/ledger/step_record.h"

#include <numeric>

namespace drivetrain {
namespace {

template <std::size_t N, class Enum>
const char* pick(const char* const (&names)[N], Enum e) {
  const auto i = static_cast<std::size_t>(e);
  return i < N ? names[i] : "?";
}

}  // namespace

const char* name(Phase phase) {
  constexpr const char* kNames[kPhases] = {"data_wait", "copy",       "forward", "backward", "recompute",
                                           "optimizer", "checkpoint", "eval",    "other"};
  return pick(kNames, phase);
}

const char* name(TimeClass c) {
  constexpr const char* kNames[kTimeClasses] = {
      "data_wait", "copy",        "forward",    "backward",       "recompute", "optimizer",  "tp_wait", "tp_transfer",
      "dp_wait",   "dp_transfer", "world_wait", "world_transfer", "host_gap",  "checkpoint", "eval",    "other"};
  return pick(kNames, c);
}

const char* name(OpClass c) {
  constexpr const char* kNames[kOpClasses] = {"gemm",      "attention",      "norm",
                                              "pointwise", "embedding_loss", "optimizer"};
  return pick(kNames, c);
}

const char* name(CommAxis a) {
  constexpr const char* kNames[kCommAxes] = {"tp", "dp", "world"};
  return pick(kNames, a);
}

std::int64_t StepRecord::residual_ns() const {
  return std::accumulate(class_ns.begin(), class_ns.end(), wall_ns, std::minus<>());
}

}  // namespace drivetrain
