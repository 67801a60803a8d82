#include "runtime/ledger/step_ledger.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

// The class of the time that a phase keeps; of a compute phase, the class of its operators.
constexpr TimeClass class_of(Phase phase) {
  switch (phase) {
    case Phase::kDataWait:
      return TimeClass::kDataWait;
    case Phase::kCopy:
      return TimeClass::kCopy;
    case Phase::kForward:
      return TimeClass::kForward;
    case Phase::kBackward:
      return TimeClass::kBackward;
    case Phase::kRecompute:
      return TimeClass::kRecompute;
    case Phase::kOptimizer:
      return TimeClass::kOptimizer;
    case Phase::kCheckpoint:
      return TimeClass::kCheckpoint;
    case Phase::kEval:
      return TimeClass::kEval;
    case Phase::kOther:
      break;
  }
  return TimeClass::kOther;
}

constexpr bool is_compute(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kBackward || phase == Phase::kRecompute ||
         phase == Phase::kOptimizer;
}

constexpr TimeClass wait_class(CommAxis axis) {
  return axis == CommAxis::kTp   ? TimeClass::kTpWait
         : axis == CommAxis::kDp ? TimeClass::kDpWait
                                 : TimeClass::kWorldWait;
}
constexpr TimeClass transfer_class(CommAxis axis) {
  return axis == CommAxis::kTp   ? TimeClass::kTpTransfer
         : axis == CommAxis::kDp ? TimeClass::kDpTransfer
                                 : TimeClass::kWorldTransfer;
}

}  // namespace

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

StepLedger::StepLedger(LedgerClock clock) : clock_(clock), events_(kEvents), ended_(kEvents) {
  restart();
}

void StepLedger::restart() {
  begin(clock_());
}

void StepLedger::begin(std::int64_t at_ns) {
  running_ = StepRecord{};
  running_.begin_ns = mark_ = at_ns;
  culprits_ = {};
  calls_ = {};
  count_ = 0;
  dropped_ = 0;
}

bool StepLedger::computing() const {
  return depth_ > 0 && is_compute(open_[depth_ - 1].phase);
}

// Time that no operator and no collective claimed.
void StepLedger::charge_until(std::int64_t at_ns) {
  if (depth_ > 0) add(computing() ? TimeClass::kHostGap : class_of(open_[depth_ - 1].phase), at_ns - mark_);
  mark_ = at_ns;
}

void StepLedger::open(Phase phase, std::int64_t at_ns) {
  if (depth_ == kDepth) throw Error(ErrorKind::kLogic, std::string("ledger phases nest too deep at ") + name(phase));
  charge_until(at_ns);
  open_[depth_++] = {phase, at_ns};
  ++calls_.phases;
}

void StepLedger::close(std::int64_t at_ns) {
  charge_until(at_ns);
  if (depth_ == 0) return;
  const Open& closed = open_[--depth_];
  note({.begin_ns = closed.begin_ns, .end_ns = at_ns, .what = static_cast<std::uint8_t>(closed.phase)});
}

void StepLedger::op(OpClass c, std::int64_t begin_ns, std::int64_t end_ns, double flops, double bytes) {
  if (!computing()) return;  // the phase keeps its time
  charge_until(begin_ns);
  add(class_of(open_[depth_ - 1].phase), end_ns - begin_ns);
  mark_ = end_ns;
  OpTotals& totals = running_.ops[static_cast<std::size_t>(c)];
  totals.ns += end_ns - begin_ns;
  totals.flops += flops;
  totals.bytes += bytes;
  ++calls_.ops;
}

void StepLedger::collective(const CollectiveSpan& span) {
  if (depth_ == 0) return;
  ++calls_.collectives;
  const CollectiveTiming& t = span.timing;
  note({.begin_ns = t.arrival_ns,
        .end_ns = t.end_ns,
        .last_arrival_ns = t.last_arrival_ns,
        .bytes = t.bytes,
        .kind = LedgerEvent::Kind::kCollective,
        .what = static_cast<std::uint8_t>(span.op),
        .axis = static_cast<std::uint8_t>(span.axis),
        .last_rank = span.last_rank,
        .sequence = span.sequence});
  if (!computing()) return;
  charge_until(span.begin_ns);
  const std::int64_t all_there_ns =
      t.last_arrival_ns == 0 ? span.begin_ns : std::clamp(t.last_arrival_ns, span.begin_ns, span.end_ns);
  const std::int64_t waited_ns = all_there_ns - span.begin_ns;
  add(wait_class(span.axis), waited_ns);
  add(transfer_class(span.axis), span.end_ns - all_there_ns);
  mark_ = span.end_ns;
  AxisTotals& totals = running_.axes[static_cast<std::size_t>(span.axis)];
  totals.bytes += t.bytes;
  ++totals.calls;
  totals.in_flight_ns += std::max<std::int64_t>(0, t.end_ns - std::max(t.arrival_ns, t.last_arrival_ns));
  if (waited_ns > 0 && span.last_rank >= 0) blame(span.axis, span.last_rank, waited_ns);
}

void StepLedger::blame(CommAxis axis, int world_rank, std::int64_t ns) {
  auto& table = culprits_[static_cast<std::size_t>(axis)];
  Culprit* smallest = &table[0];
  for (Culprit& c : table) {
    if (c.world_rank == world_rank || c.world_rank < 0) {
      c.world_rank = world_rank;
      c.ns += ns;
      return;
    }
    if (c.ns < smallest->ns) smallest = &c;
  }
  *smallest = {world_rank, smallest->ns + ns, smallest->ns};
}

void StepLedger::name_culprits() {
  for (std::size_t axis = 0; axis < kCommAxes; ++axis) {
    AxisTotals& totals = running_.axes[axis];
    for (const Culprit& c : culprits_[axis]) {
      if (c.ns - c.inherited_ns <= totals.culprit_ns) continue;
      totals.culprit = c.world_rank;
      totals.culprit_ns = c.ns - c.inherited_ns;
    }
  }
}

void StepLedger::note(const LedgerEvent& event) {
  if (count_ == events_.size()) {
    ++dropped_;
    return;
  }
  events_[count_++] = event;
}

StepRecord StepLedger::end_step(std::int64_t step, std::int64_t tokens, std::int64_t at_ns) {
  if (depth_ > 0)
    throw Error(ErrorKind::kLogic,
                std::string("a step ends while its phase ") + name(open_[depth_ - 1].phase) + " is open");
  name_culprits();
  StepRecord done = running_;
  done.step = step;
  done.tokens = tokens;
  done.wall_ns = at_ns - done.begin_ns;
  for (std::size_t i = 0; i < count_; ++i) events_[i].step = step;
  events_.swap(ended_);
  ended_count_ = count_;
  ended_dropped_ = dropped_;
  ended_calls_ = calls_;
  begin(at_ns);
  return done;
}

}  // namespace drivetrain
