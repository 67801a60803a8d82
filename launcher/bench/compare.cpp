#include "launcher/bench/compare.h"

#include <cmath>
#include <numbers>

#include "kernels/error.h"

namespace drivetrain {
namespace {

// P(|T| > t), the finite sums of Abramowitz and Stegun 26.7.3 and 26.7.4.
double two_tails(double t, std::size_t freedom) {
  const double angle = std::atan2(t, std::sqrt(static_cast<double>(freedom)));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1, sum = freedom == 1 ? 0 : term;
  for (std::size_t k = odd ? 3 : 2; k + 2 <= freedom; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  const double inside = odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
  return 1 - inside;
}

// Of the standard deviation of n normal values: what it is on average, as a share of the true one.
double mean_of_deviation(std::size_t n) {
  const auto real = static_cast<double>(n);
  return std::sqrt(2 / (real - 1)) * std::exp(std::lgamma(real / 2) - std::lgamma((real - 1) / 2));
}

// The true mean, in its true standard errors, that a test at `t` finds in 95 of 100 samples of n: the estimated error
// varies too, about normally (the usual approximation of the noncentral t).
double found_in_95(double t, std::size_t n) {
  constexpr double kNormal95 = 1.6449;
  const double share = mean_of_deviation(n);
  return t * share + kNormal95 * std::sqrt(1 + t * t * (1 - share * share));
}

}  // namespace

double student_t(double p, std::size_t freedom) {
  if (!(p > 0 && p < 1) || freedom < 1) throw Error(ErrorKind::kLogic, "student_t: p or degrees of freedom");
  double low = 0, high = 1;
  while (two_tails(high, freedom) > p && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (two_tails(middle, freedom) > p ? low : high) = middle;
  }
  return high;
}

const char* name(Comparison::Verdict verdict) {
  return verdict == Comparison::Verdict::kFaster   ? "faster"
         : verdict == Comparison::Verdict::kSlower ? "slower"
                                                   : "equal";
}

Comparison compare_pairs(std::span<const double> values, std::span<const double> baseline, std::size_t comparisons) {
  const std::size_t n = values.size();
  if (n < 2 || baseline.size() != n || comparisons < 1)
    throw Error(ErrorKind::kLogic, "a comparison of " + std::to_string(n) + " pairs");
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += std::log(values[i] / baseline[i]) / static_cast<double>(n);
  double squares = 0;
  for (std::size_t i = 0; i < n; ++i) squares += std::pow(std::log(values[i] / baseline[i]) - mean, 2);
  const double error_of_mean = std::sqrt(squares / static_cast<double>((n - 1) * n));
  const double t = student_t(kFalseAlarms / static_cast<double>(comparisons), n - 1);
  Comparison c;
  c.change = std::expm1(mean);
  c.low = std::expm1(mean - t * error_of_mean);
  c.high = std::expm1(mean + t * error_of_mean);
  c.detectable = std::expm1(found_in_95(t, n) * error_of_mean / mean_of_deviation(n));
  if (std::abs(mean) > t * error_of_mean)
    c.verdict = mean > 0 ? Comparison::Verdict::kFaster : Comparison::Verdict::kSlower;
  return c;
}

}  // namespace drivetrain
