#include "launcher/report/run_clocks.h"

#include <cstdlib>

namespace drivetrain {

// Two machines may go by one name; that they booted within a millisecond of each other besides is not to be expected.
bool same_clock(const LedgerInfo& a, const LedgerInfo& b) {
  constexpr std::int64_t kAgreeNs = 1000000;
  return a.host == b.host && std::abs((a.unix_ns - a.steady_ns) - (b.unix_ns - b.steady_ns)) < kAgreeNs;
}

std::vector<ClockMap> run_clocks(const std::vector<LedgerInfo>& infos,
                                 const std::vector<std::span<const LedgerEvent>>& events) {
  std::vector<ClockMap> clocks(infos.size());
  if (infos.size() == static_cast<std::size_t>(infos[0].world_size))
    clocks = estimate_clocks(events, infos[0].dp, infos[0].tp);
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (same_clock(infos[0], infos[i])) clocks[i] = {.samples = clocks[i].samples};
  return clocks;
}

}  // namespace drivetrain
