#include "runtime/ledger/ledger_cost.h"

#include <algorithm>
#include <limits>

#include "kernels/plan_device.h"
#include "runtime/comm/plan_comm.h"
#include "runtime/ledger/ledger_ops.h"
#include "runtime/ledger/observed_comm.h"

namespace drivetrain {
namespace {

// The best of some rounds: what the entry costs when nobody disturbs it.
template <class Entry>
double cost_of(StepLedger& ledger, const Entry& entry) {
  constexpr int kRounds = 8, kEntries = 500;
  double best = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    ledger.restart();
    const std::int64_t begin_ns = steady_ns();
    for (int i = 0; i < kEntries; ++i) entry();
    best = std::min(best, static_cast<double>(steady_ns() - begin_ns) / kEntries);
  }
  return best;
}

}  // namespace

LedgerCost measure_ledger_cost() {
  StepLedger ledger;
  const auto device = make_plan_device(nullptr);
  LedgerOps ops(device->ops(), ledger);
  ObservedCommunicator group(make_plan_communicator(0, 2), CommAxis::kDp, {0, 1}, ledger);
  const Tensor x(device->allocate(4), DType::kF32, {1});
  LedgerCost cost;
  const LedgerSpan span(&ledger, Phase::kForward);
  cost.phase_ns = cost_of(ledger, [&] { const LedgerSpan inner(&ledger, Phase::kBackward); });
  cost.op_ns = cost_of(ledger, [&] { ops.add(x, x, x); });
  cost.collective_ns = cost_of(ledger, [&] { group.all_reduce(x, ReduceOp::kSum).wait(); });
  return cost;
}

}  // namespace drivetrain
