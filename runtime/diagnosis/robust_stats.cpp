#include "runtime/diagnosis/robust_stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace drivetrain {
namespace {

double real(std::size_t n) {
  return static_cast<double>(n);
}

}  // namespace

double quantile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  const double place = p * real(values.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(low);
  std::nth_element(values.begin(), at, values.end());
  if (place == real(low)) return *at;
  const double next = *std::min_element(at + 1, values.end());
  return *at + (place - real(low)) * (next - *at);
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

double mean(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / real(values.size());
}

double robust_sigma(std::span<const double> values, double center) {
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double v : values) deviations.push_back(std::abs(v - center));
  return kMadToSigma * median(std::move(deviations));
}

double robust_z(double x, double center, double sigma) {
  if (x == center) return 0;
  if (sigma > 0) return (x - center) / sigma;
  return std::copysign(std::numeric_limits<double>::infinity(), x - center);
}

Core densest_part(std::vector<double> values) {
  Core core;
  if (values.empty()) return core;
  std::sort(values.begin(), values.end());
  const std::size_t span = values.size() / 3, last = values.size() - span;
  double shortest = values[span] - values[0];
  for (std::size_t i = 0; i < last; ++i) shortest = std::min(shortest, values[i + span] - values[i]);
  std::size_t at = 0;
  while (values[at + span] - values[at] > 2 * shortest) ++at;
  const double width = values[at + span] - values[at], middle = values[at] + width / 2;
  // The middle third of a normal distribution spans 0.86 sigma: 4 sigma to each side.
  std::erase_if(values, [&](double v) { return std::abs(v - middle) > 4 / 0.86 * width; });
  core.center = median(values);
  core.sigma = robust_sigma(values, core.center);
  return core;
}

double clipped_mean(std::span<const double> values, double sigmas) {
  const double center = median({values.begin(), values.end()});
  const double bound = center + sigmas * robust_sigma(values, center);
  double sum = 0;
  for (const double v : values) sum += std::min(v, bound);
  return values.empty() ? 0 : sum / real(values.size());
}

double normal_tail(double z) {
  return 0.5 * std::erfc(z / std::sqrt(2.0));
}

double normal_quantile_of_tail(double p) {
  double low = -40, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double mid = (low + high) / 2;
    (normal_tail(mid) > p ? low : high) = mid;
  }
  return (low + high) / 2;
}

double poisson_tail(std::size_t k, double expected) {
  double term = std::exp(-expected), below = 0;
  for (std::size_t i = 0; i < k; ++i) {
    below += term;
    term *= expected / real(i + 1);
  }
  return std::max(0.0, 1 - below);
}

std::vector<bool> benjamini_hochberg(std::span<const double> p_values, double rate) {
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p_values[a] < p_values[b]; });
  std::size_t rejected = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (p_values[order[i]] <= rate * real(i + 1) / real(order.size())) rejected = i + 1;
  std::vector<bool> result(p_values.size(), false);
  for (std::size_t i = 0; i < rejected; ++i) result[order[i]] = true;
  return result;
}

double effective_count(std::span<const double> series) {
  const double n = real(series.size());
  if (series.size() < 3) return n;
  // Clipped, so that one spike does not hide the likeness of the rest.
  const double center = median({series.begin(), series.end()});
  const double bound = 3 * robust_sigma(series, center);
  if (bound == 0) return n;
  double squares = 0, products = 0, before = 0;
  for (const double v : series) {
    const double d = std::clamp(v - center, -bound, bound);
    squares += d * d;
    products += d * before;
    before = d;
  }
  const double r = std::clamp(products / squares, 0.0, 0.9);
  return std::max(2.0, n * (1 - r) / (1 + r));
}

MedianTest median_above_zero(std::span<const double> series) {
  MedianTest test;
  if (series.size() < 2) return test;
  test.effect = median({series.begin(), series.end()});
  test.error = kMedianError * robust_sigma(series, test.effect) / std::sqrt(effective_count(series));
  test.p = normal_tail(robust_z(test.effect, 0, test.error));
  return test;
}

double minimum_detectable(double sigma, double count, std::size_t hypotheses, double rate) {
  if (count < 2 || hypotheses == 0) return std::numeric_limits<double>::infinity();
  const double power_z = 1.6449;  // 95 %
  return (normal_quantile_of_tail(rate / real(hypotheses)) + power_z) * kMedianError * sigma / std::sqrt(count);
}

Line theil_sen(std::span<const std::pair<double, double>> points) {
  const std::size_t n = points.size();
  Line line;
  if (n == 0) return line;
  // Pairs (i, i + lag): all of them where that is few, else with a stride over the lags.
  const std::size_t pairs = n * (n - 1) / 2;
  const std::size_t stride = std::max<std::size_t>(1, pairs / kMostSlopes);
  std::vector<double> slopes;
  for (std::size_t lag = n - 1, used = 0; lag > 0; --lag, ++used) {
    if (used % stride != 0) continue;
    for (std::size_t i = 0; i + lag < n; ++i) {
      const double dx = points[i + lag].first - points[i].first;
      if (dx != 0) slopes.push_back((points[i + lag].second - points[i].second) / dx);
    }
  }
  line.slope = median(std::move(slopes));
  std::vector<double> offsets;
  offsets.reserve(n);
  for (const auto& [x, y] : points) offsets.push_back(y - line.slope * x);
  line.offset = median(std::move(offsets));
  return line;
}

}  // namespace drivetrain
