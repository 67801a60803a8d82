#include "runtime/diagnosis/counterfactual.h"

#include <algorithm>
#include <numeric>

#include "kernels/error.h"
#include "runtime/diagnosis/robust_stats.h"

namespace drivetrain {
namespace {

// Far enough out that exponential jitter keeps its mean, near enough that one wild step of 50 does not count.
constexpr double kClipSigmas = 6;
// A step in which a rank stands out from the others, for repairs of "whoever it was".
constexpr double kOutlierSigmas = 6;

// Each value replaced by the peers' value at the same quantile.
std::vector<double> like_peers(std::span<const double> own, std::vector<double> peers) {
  std::sort(peers.begin(), peers.end());
  std::vector<std::size_t> order(own.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return own[a] < own[b]; });
  std::vector<double> result(own.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double q = (static_cast<double>(i) + 0.5) / static_cast<double>(own.size());
    const double place = std::max(0.0, q * static_cast<double>(peers.size()) - 0.5);
    const auto low = static_cast<std::size_t>(place);
    const std::size_t high = std::min(low + 1, peers.size() - 1);
    result[order[i]] = peers[low] + (place - static_cast<double>(low)) * (peers[high] - peers[low]);
  }
  return result;
}

}  // namespace

Counterfactual::Changes Counterfactual::changes(const Repair& repair) const {
  const std::size_t steps = late_.steps();
  Changes change(static_cast<std::size_t>(late_.ranks()) * steps, 0);
  const auto of = [&](int rank, std::size_t s) -> double& {
    return change[static_cast<std::size_t>(rank) * steps + s];
  };
  // Adds, for one rank, what turns `value(rank, s)` into a value like the peers', times `scale(s)`.
  const auto adapt = [&](int rank, auto&& value, auto&& scale) {
    const auto series = [&](int r) {
      std::vector<double> v;
      for (std::size_t s = 0; s < steps; ++s) v.push_back(value(r, s));
      return v;
    };
    std::vector<double> medians;  // of the peers
    for (int j = 0; j < late_.ranks(); ++j)
      if (j != rank) medians.push_back(median(series(j)));
    // The slower half of the peers may be repaired next; they are no model.
    const double usual = medians.empty() ? 0 : quantile(medians, 0.5);
    std::vector<double> peers;
    for (int j = 0; j < late_.ranks(); ++j) {
      const std::vector<double> v = series(j);
      if (j != rank && median(v) <= usual) peers.insert(peers.end(), v.begin(), v.end());
    }
    if (peers.empty()) return;
    const std::vector<double> own = series(rank), wanted = like_peers(own, std::move(peers));
    for (std::size_t s = 0; s < steps; ++s) of(rank, s) += (wanted[s] - own[s]) * scale(s);
  };
  const auto once = [](std::size_t) { return 1.0; };

  if (repair.signal == Signal::kLoad) {
    for (int r = 0; r < late_.ranks(); ++r)
      for (std::size_t s = 0; s < steps; ++s) of(r, s) = late_.passes(r, s) * (1 / late_.load(r, s) - 1);
  } else if (repair.rank < 0) {
    for (int r = 0; r < late_.ranks(); ++r) {
      const auto excess = late_.excess(r, repair.signal);
      const double center = median({excess.begin(), excess.end()});
      const double sigma = robust_sigma(excess, center);
      for (std::size_t s = 0; s < steps; ++s)
        if (excess[s] > center + kOutlierSigmas * sigma) of(r, s) = center - excess[s];
    }
  } else if (repair.signal == Signal::kSlow) {
    adapt(
        repair.rank, [&](int r, std::size_t s) { return late_.passes(r, s) / late_.load(r, s); },
        [&](std::size_t s) { return late_.load(repair.rank, s); });
    adapt(
        repair.rank, [&](int r, std::size_t s) { return late_.optimizer(r, s); }, once);
  } else {
    adapt(
        repair.rank, [&](int r, std::size_t s) { return late_.own(r, repair.signal, s); }, once);
  }
  return change;
}

std::vector<double> Counterfactual::gains_of(const std::vector<Changes>& changes, std::size_t chosen) const {
  const std::size_t steps = late_.steps();
  std::vector<double> result(steps, 0);
  for (std::size_t s = 0; s < steps; ++s) {
    double before = 0, after = 0;
    for (int r = 0; r < late_.ranks(); ++r) {
      const double own = late_.own(r, Signal::kTotal, s);
      double repaired = own;
      for (std::size_t i = 0; i < changes.size(); ++i)
        if (chosen >> i & 1) repaired += changes[i][static_cast<std::size_t>(r) * steps + s];
      before = std::max(before, own);
      after = std::max(after, repaired);
    }
    result[s] = before - after;
  }
  return result;
}

std::vector<double> Counterfactual::gains(std::span<const Repair> repairs) const {
  std::vector<Changes> all;
  for (const Repair& r : repairs) all.push_back(changes(r));
  return gains_of(all, ~std::size_t{0});
}

double Counterfactual::gain(std::span<const Repair> repairs, bool steady) const {
  const std::vector<double> each = gains(repairs);
  return steady ? clipped_mean(each, kClipSigmas) : mean(each);
}

std::vector<double> Counterfactual::parts(std::span<const Repair> repairs, bool steady) const {
  const std::size_t n = repairs.size();
  if (n > kMostRepairs)
    throw Error(ErrorKind::kLogic,
                "a counterfactual of " + std::to_string(n) + " repairs; at most " + std::to_string(kMostRepairs));
  std::vector<Changes> all;
  for (const Repair& r : repairs) all.push_back(changes(r));
  std::vector<double> value(std::size_t{1} << n);
  for (std::size_t set = 0; set < value.size(); ++set) {
    const std::vector<double> each = gains_of(all, set);
    value[set] = steady ? clipped_mean(each, kClipSigmas) : mean(each);
  }
  // weight of a set of k others: k! (n - 1 - k)! / n!
  std::vector<double> weight(n, 0);
  for (std::size_t k = 0; k < n; ++k) {
    weight[k] = 1 / static_cast<double>(n);
    for (std::size_t i = 1; i <= k; ++i) weight[k] *= static_cast<double>(i) / static_cast<double>(n - i);
  }
  std::vector<double> result(n, 0);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t set = 0; set < value.size(); ++set) {
      if (set >> i & 1) continue;
      const auto others = static_cast<std::size_t>(__builtin_popcountll(set));
      result[i] += weight[others] * (value[set | std::size_t{1} << i] - value[set]);
    }
  return result;
}

double mfu_points_gained(double mfu, double step_ms, double gain_ms) {
  if (step_ms <= gain_ms) return 0;
  return 100 * mfu * (step_ms / (step_ms - gain_ms) - 1);
}

}  // namespace drivetrain
