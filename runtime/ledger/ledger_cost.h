// What one entry into the ledger costs on this machine: measured at start-up through the very decorators that training
// uses, over a device and a group that do nothing.
#pragma once

namespace drivetrain {

struct LedgerCost {
  double phase_ns = 0, op_ns = 0, collective_ns = 0;
};
LedgerCost measure_ledger_cost();  // takes about a millisecond

}  // namespace drivetrain
