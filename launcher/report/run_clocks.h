// The clocks of a run's ranks: which ones are the same, and how the others map onto rank 0's.
#pragma once
#include <span>
#include <vector>

#include "runtime/diagnosis/clock_sync.h"
#include "runtime/ledger/ledger_info.h"

namespace drivetrain {

// By place in `infos`, which begins with rank 0. Ranks of one host share its clock: the identity, without error. Others
// are estimated from the ends of the collectives in `events` (of the same ranks); with none in common the map is the
// identity and its `samples` 0.
std::vector<ClockMap> run_clocks(const std::vector<LedgerInfo>& infos,
                                 const std::vector<std::span<const LedgerEvent>>& events);
// Same host and same clock as rank 0's, so there is nothing to estimate.
bool same_clock(const LedgerInfo& a, const LedgerInfo& b);

}  // namespace drivetrain
