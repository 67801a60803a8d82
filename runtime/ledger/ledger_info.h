// Who wrote a ledger file and on what: enough to judge its rows without any other file of the run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/ledger/step_record.h"

namespace drivetrain {

struct LedgerInfo {
  int world_rank = 0, world_size = 1;
  int dp = 1, tp = 1;  // world_rank = dp_rank * tp + tp_rank
  int threads = 1;
  double flops_per_token = 0;  // model FLOPs in our own convention (flops.h, kCausal)
  double peak_flops = 0;       // FLOP/s of one rank's device in the compute dtype; 0: unknown
  std::int64_t resumed_after =
      0;  // rows up to this step are of earlier processes: their clock and host may be others
  std::int64_t steady_ns = 0, unix_ns = 0;  // one instant on the clock of the rows and on the calendar's
  std::string compute{};                    // "bf16"
  std::string host{};                       // at most 63 characters
  std::string device{};                     // at most 95 characters
};

// World ranks of the group that the rank of `info` meets on an axis, in group order.
std::vector<int> axis_members(const LedgerInfo& info, CommAxis axis);

}  // namespace drivetrain
