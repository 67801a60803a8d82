#include "runtime/diagnosis/findings.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runtime/diagnosis/robust_stats.h"

namespace drivetrain {
namespace {

// A steady fault shows at half its size in at least this share of steps; noise around zero does in a third.
constexpr double kPersistent = 0.6;
// An outlying step: this many spreads off (heavy tails reach 4 in a hundred steps) and at least this share of the step.
constexpr double kOutlierSigmas = 6, kOutlierShare = 0.05;
// Outlying steps that any rank of a healthy job has: page cache, cron, clocks. One step in fifty.
constexpr double kHealthyOutliers = 0.02;
// Fewer outliers are chance, whatever their size.
constexpr std::size_t kFewestOutliers = 3;
// Late for this many steps up to now, a fault is taken to last.
constexpr std::ptrdiff_t kFewestLasting = 5;
// A rank keeps its turn when it is late in at least this share of them, and lateness out of turn is the exception.
constexpr double kTurnsKept = 0.8, kInTurn = 0.7;
// Chance that an outlier of a random series falls on the next turn; each turn kept beyond the first two earns it.
constexpr double kTurnByChance = 0.1;

double real(std::size_t n) {
  return static_cast<double>(n);
}

std::vector<std::size_t> outliers(std::span<const double> excess, double step_ms) {
  const Core core = densest_part({excess.begin(), excess.end()});
  const double bound = core.center + std::max(kOutlierSigmas * core.sigma, kOutlierShare * step_ms);
  std::vector<std::size_t> result;
  for (std::size_t s = 0; s < excess.size(); ++s)
    if (excess[s] > bound) result.push_back(s);
  return result;
}

double median_at(std::span<const double> values, std::span<const std::size_t> steps) {
  std::vector<double> chosen;
  for (const std::size_t s : steps) chosen.push_back(values[s]);
  return median(std::move(chosen));
}

// A lasting fault begins where it is late three times in a row: a chance pause before it is no beginning.
std::size_t onset_of(std::span<const std::size_t> affected) {
  for (std::size_t i = 0; i + 2 < affected.size(); ++i)
    if (affected[i + 2] == affected[i] + 2) return affected[i];
  return affected.empty() ? 0 : affected.front();
}

Finding steady(const Lateness& late, int rank, Signal signal) {
  const auto excess = late.excess(rank, signal);
  const MedianTest test = median_above_zero(excess);
  Finding f{.rank = rank, .signal = signal, .affected = {}, .p = test.p};
  if (test.effect <= 0) {
    f.p = 1;
    return f;
  }
  for (std::size_t s = 0; s < excess.size(); ++s)
    if (excess[s] >= test.effect / 2) f.affected.push_back(s);
  f.onset = onset_of(f.affected);
  f.excess_ms = median_at(excess, f.affected);
  f.persistence = real(f.affected.size()) / real(excess.size());
  if (f.persistence < kPersistent) f.p = 1;
  return f;
}

struct Turns {
  std::size_t period = 0, kept = 0, due = 0;
};
std::optional<Turns> find_turns(std::span<const std::size_t> steps, std::size_t count) {
  for (std::size_t period = 2; period <= count / kFewestOutliers; ++period)
    for (std::size_t phase = 0; phase < period; ++phase) {
      const auto in_turn = [&](std::size_t s) { return s % period == phase; };
      const auto kept = static_cast<std::size_t>(std::count_if(steps.begin(), steps.end(), in_turn));
      if (kept < kFewestOutliers || real(kept) < kInTurn * real(steps.size())) continue;
      // From the first outlier on: the fault may have begun inside the window.
      const std::size_t first = *std::find_if(steps.begin(), steps.end(), in_turn);
      const std::size_t due = (count - 1 - first) / period + 1;
      if (real(kept) >= kTurnsKept * real(due)) return Turns{period, kept, due};
    }
  return std::nullopt;
}

Finding intermittent(const Lateness& late, int rank, Signal signal, double step_ms) {
  const auto excess = late.excess(rank, signal);
  Finding f{.rank = rank, .signal = signal, .pattern = Pattern::kOccasional, .affected = outliers(excess, step_ms)};
  if (f.affected.size() < kFewestOutliers) return f;
  std::vector<double> counts;
  for (int j = 0; j < late.ranks(); ++j)
    if (j != rank) counts.push_back(real(outliers(late.excess(j, signal), step_ms).size()));
  f.p = poisson_tail(f.affected.size(), std::max(kHealthyOutliers * real(excess.size()), median(std::move(counts))));
  f.persistence = 1;
  if (const auto turns = find_turns(f.affected, excess.size())) {
    f.pattern = Pattern::kPeriodic;
    f.period = static_cast<std::int64_t>(turns->period);
    f.persistence = real(turns->kept) / real(turns->due);
    f.p *= std::pow(kTurnByChance, real(turns->kept - 2));
    f.onset = f.affected.front();
  } else {
    f.onset = onset_of(f.affected);
    // Late nearly always since then: a steady fault that began inside the window.
    const auto since =
        std::count_if(f.affected.begin(), f.affected.end(), [&](std::size_t s) { return s >= f.onset; });
    const double share = static_cast<double>(since) / real(excess.size() - f.onset);
    if (since >= kFewestLasting && share >= kTurnsKept) {
      f.pattern = Pattern::kSteady;
      f.persistence = share;
    }
  }
  f.excess_ms = median_at(excess, f.affected);
  return f;
}

}  // namespace

std::vector<Finding> significant_lateness(const Lateness& late, double step_ms, double false_alarms) {
  std::vector<Finding> all, result;
  for (int r = 0; r < late.ranks(); ++r)
    for (std::size_t k = 0; k < kSignals; ++k) {
      all.push_back(steady(late, r, static_cast<Signal>(k)));
      all.push_back(intermittent(late, r, static_cast<Signal>(k), step_ms));
    }
  std::vector<double> p_values;
  for (const Finding& f : all) p_values.push_back(f.p);
  const std::vector<bool> real_ones = benjamini_hochberg(p_values, false_alarms);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (real_ones[i]) result.push_back(std::move(all[i]));
  return result;
}

Finding changing_rank_pauses(const Lateness& late, double step_ms) {
  Finding f{.pattern = Pattern::kChangingRank, .affected = {}};
  const std::size_t steps = late.steps();
  std::vector<bool> any(steps, false);
  std::vector<double> sizes;
  std::size_t ranks_with = 0, count = 0;
  for (int r = 0; r < late.ranks(); ++r) {
    const auto excess = late.excess(r, Signal::kTotal);
    const std::vector<std::size_t> mine = outliers(excess, step_ms);
    ranks_with += mine.empty() ? 0 : 1;
    count += mine.size();
    for (const std::size_t s : mine) {
      any[s] = true;
      sizes.push_back(excess[s]);
    }
  }
  f.p = poisson_tail(count, kHealthyOutliers * real(steps) * late.ranks());
  if (ranks_with < 2 || count < kFewestOutliers) return f;
  for (std::size_t s = 0; s < steps; ++s)
    if (any[s]) f.affected.push_back(s);
  f.excess_ms = median(std::move(sizes));
  f.persistence = 1;
  return f;
}

double detectable_ms(const Lateness& late, double false_alarms) {
  double worst = 0;
  for (int r = 0; r < late.ranks(); ++r) {
    const auto excess = late.excess(r, Signal::kTotal);
    const double sigma = robust_sigma(excess, median({excess.begin(), excess.end()}));
    worst = std::max(worst, minimum_detectable(sigma, effective_count(excess),
                                               static_cast<std::size_t>(late.ranks()) * kSignals * 2, false_alarms));
  }
  return worst;
}

}  // namespace drivetrain
