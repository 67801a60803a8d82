#include "runtime/ledger/step_ledger.h"

#include <chrono>
#include <string>

#include "kernels/error.h"

namespace drivetrain {

const char* name(Phase phase) {
  constexpr const char* kNames[kPhases] = {"data_wait", "forward",    "backward", "recompute", "grad_sync",
                                           "optimizer", "checkpoint", "eval",     "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::int64_t StepRecord::residual_ns() const {
  std::int64_t left = wall_ns;
  for (const std::int64_t ns : phase_ns) left -= ns;
  return left;
}

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StepLedger::StepLedger(LedgerClock clock) : clock_(clock) {
  restart();
}

void StepLedger::restart() {
  running_ = StepRecord{};
  running_.begin_ns = mark_ = clock_();
}

void StepLedger::charge(std::int64_t now) {
  if (depth_ > 0) running_.phase_ns[static_cast<std::size_t>(open_[depth_ - 1])] += now - mark_;
  mark_ = now;
}

void StepLedger::open(Phase phase) {
  if (depth_ == kDepth) throw Error(ErrorKind::kLogic, std::string("ledger spans nest too deep at ") + name(phase));
  charge(clock_());
  open_[depth_++] = phase;
}

void StepLedger::close() {
  charge(clock_());
  if (depth_ > 0) --depth_;
}

StepRecord StepLedger::end_step(std::int64_t step, std::int64_t tokens) {
  if (depth_ > 0)
    throw Error(ErrorKind::kLogic,
                std::string("a step ends while its phase ") + name(open_[depth_ - 1]) + " is open");
  const std::int64_t now = clock_();
  StepRecord done = running_;
  done.step = step;
  done.tokens = tokens;
  done.wall_ns = now - done.begin_ns;
  running_ = StepRecord{};
  running_.begin_ns = mark_ = now;
  return done;
}

}  // namespace drivetrain
