// Puts the clocks of all ranks on one: without extra messages, from what ranks share anyway. A collective ends on all its
// members at nearly the same moment; each notices a little later. So the difference of the noted ends is the difference of
// the clocks plus noise, and a robust line through hundreds of them gives offset and drift.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/ledger/step_record.h"

namespace drivetrain {

struct CollectiveEnd {
  std::uint64_t key = 0;  // the same on both ranks for the same collective
  std::int64_t end_ns = 0;
};

// clock of the rank = clock of the reference + offset + drift x (reference - origin).
struct ClockMap {
  std::int64_t origin_ns = 0;  // on the reference's clock
  double offset_ns = 0;        // at the origin, the middle of the samples
  double drift = 0;            // dimensionless: 1e-6 gains one microsecond a second
  double error_ns = 0;         // of the map within the samples: three standard errors plus half the usual noise
  std::size_t samples = 0;     // collectives in common; 0: nothing is known, the map is the identity
  std::int64_t to_reference(std::int64_t rank_ns) const;
};

// The noise may be one-sided and up to a quarter of the samples wild. Both spans in any order.
ClockMap estimate_clock(std::span<const CollectiveEnd> reference, std::span<const CollectiveEnd> rank);

// One map per world rank, onto the clock of rank 0, from the collectives that it shares with rank 0.
std::vector<ClockMap> estimate_clocks(const std::vector<std::span<const LedgerEvent>>& ranks, int dp, int tp);

}  // namespace drivetrain
