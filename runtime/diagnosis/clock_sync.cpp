#include "runtime/diagnosis/clock_sync.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "runtime/diagnosis/robust_stats.h"

namespace drivetrain {
namespace {

// Enough for a few microseconds under 20 us of noise; all pairs of them are 100,000 slopes.
constexpr std::size_t kMostSamples = 450;

}  // namespace

std::int64_t ClockMap::to_reference(std::int64_t rank_ns) const {
  // rank = ref + offset + drift (ref - origin), solved for ref - origin.
  const double since = (static_cast<double>(rank_ns - origin_ns) - offset_ns) / (1 + drift);
  return origin_ns + static_cast<std::int64_t>(std::llround(since));
}

ClockMap estimate_clock(std::span<const CollectiveEnd> reference, std::span<const CollectiveEnd> rank) {
  std::unordered_map<std::uint64_t, std::int64_t> ends;
  for (const CollectiveEnd& e : rank) ends.emplace(e.key, e.end_ns);
  std::vector<std::pair<std::int64_t, std::int64_t>> common;  // reference, rank
  for (const CollectiveEnd& e : reference)
    if (const auto found = ends.find(e.key); found != ends.end()) common.emplace_back(e.end_ns, found->second);
  ClockMap map;
  map.samples = common.size();
  if (common.empty()) return map;
  std::sort(common.begin(), common.end());
  map.origin_ns = common[common.size() / 2].first;
  // Relative to origin and first difference, so that doubles hold nanoseconds.
  const std::int64_t base = common.front().second - common.front().first;
  std::vector<std::pair<double, double>> points;
  const std::size_t stride = (common.size() + kMostSamples - 1) / kMostSamples;
  for (std::size_t i = 0; i < common.size(); i += stride)
    points.emplace_back(static_cast<double>(common[i].first - map.origin_ns),
                        static_cast<double>(common[i].second - common[i].first - base));
  const Line line = theil_sen(points);
  map.offset_ns = line.offset + static_cast<double>(base);
  map.drift = line.slope;
  std::vector<double> rest;
  for (const auto& [x, y] : points) rest.push_back(y - line.at(x));
  const double sigma = robust_sigma(rest, 0), n = static_cast<double>(points.size());
  // At the ends of the samples a line is twice as uncertain as in the middle. Half the noise: if one of the two always
  // notices later, the samples cannot show it.
  map.error_ns = 3 * 2 * kMedianError * sigma / std::sqrt(n) + sigma / 2;
  return map;
}

std::vector<ClockMap> estimate_clocks(const std::vector<std::span<const LedgerEvent>>& ranks, int dp, int tp) {
  const auto shared = [&](std::uint8_t axis, int rank) {
    if (axis == static_cast<std::uint8_t>(CommAxis::kTp)) return rank / tp == 0;
    if (axis == static_cast<std::uint8_t>(CommAxis::kDp)) return rank % tp == 0;
    return true;
  };
  const auto ends = [&](int of, int with) {
    std::vector<CollectiveEnd> result;
    for (const LedgerEvent& e : ranks[static_cast<std::size_t>(of)])
      if (e.kind == LedgerEvent::Kind::kCollective && e.sequence > 0 && shared(e.axis, with))
        result.push_back({e.sequence << 2 | e.axis, e.end_ns});
    return result;
  };
  std::vector<ClockMap> maps(1);
  for (int r = 1; r < dp * tp; ++r) maps.push_back(estimate_clock(ends(0, r), ends(r, r)));
  return maps;
}

}  // namespace drivetrain
