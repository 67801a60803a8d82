// Statistics that a few wild values cannot move: what a verdict on noisy step times rests on. Pure arithmetic; an empty
// input has the result 0 unless said otherwise.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace drivetrain {

// A normal distribution's standard deviation over its median absolute deviation.
constexpr double kMadToSigma = 1.4826;
// Standard error of the median over that of the mean, for normal noise: sqrt(pi / 2).
constexpr double kMedianError = 1.2533;

// The p-quantile, 0 <= p <= 1, interpolated between neighbours.
double quantile(std::vector<double> values, double p);
double median(std::vector<double> values);
double mean(std::span<const double> values);
// Spread as a standard deviation: 1.4826 x median absolute deviation from `center`.
double robust_sigma(std::span<const double> values, double center);
// (x - median) / robust_sigma; 0 where the spread is 0 and x is the median, +-infinity where only the spread is 0.
double robust_z(double x, double center, double sigma);

// Where the ordinary values lie, although up to half of all are outliers upwards: the lowest interval that holds a third
// of the values and is at most twice as long as the shortest such, then median and spread of what lies near.
struct Core {
  double center = 0, sigma = 0;
};
Core densest_part(std::vector<double> values);

// Mean with values above median + `sigmas` spreads pulled back to that bound: one wild step does not make a cost.
double clipped_mean(std::span<const double> values, double sigmas);

// One-sided p-value of a standard normal z, and the z of a one-sided p.
double normal_tail(double z);
double normal_quantile_of_tail(double p);
// P(X >= k) of a Poisson variable.
double poisson_tail(std::size_t k, double expected);

// Which of these hypotheses are rejected while at most `rate` of the rejected ones are expected to be false
// (Benjamini and Hochberg 1995).
std::vector<bool> benjamini_hochberg(std::span<const double> p_values, double rate);

// How many independent values a series of neighbours is worth: n (1 - r) / (1 + r), r its lag-1 autocorrelation.
double effective_count(std::span<const double> series);

// Whether the median of a series lies above zero. `effect` is the median, `error` its standard error, `p` one-sided.
struct MedianTest {
  double effect = 0, error = 0, p = 1;
};
MedianTest median_above_zero(std::span<const double> series);

// The smallest median that a test of `hypotheses` at false alarm rate `rate` would find in 95 of 100 windows of `count`
// independent values with spread `sigma`. Same unit as sigma.
double minimum_detectable(double sigma, double count, std::size_t hypotheses, double rate);

// y = offset + slope x. Theil-Sen: the median of the slopes between points, so up to 29 % of them may be wild. Takes at
// most `kMostSlopes` slopes, of pairs spread evenly. Slope 0 for fewer than two different x.
struct Line {
  double offset = 0, slope = 0;
  double at(double x) const { return offset + slope * x; }
};
constexpr std::size_t kMostSlopes = 100000;  // 2 ms of sorting; more pairs do not steady the median further
Line theil_sen(std::span<const std::pair<double, double>> points);

}  // namespace drivetrain
