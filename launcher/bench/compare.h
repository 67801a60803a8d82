// Is one setting faster than another? From pairs of measurements, each pair taken at about the same time, so that drift of
// the machine falls out. Student's t on the logarithms of the ratios: exact for few pairs. Pure arithmetic.
#pragma once
#include <cstddef>
#include <span>

namespace drivetrain {

// The t that |T| of `freedom` degrees exceeds with probability `p` in all (both tails); 0 < p < 1, freedom >= 1.
double student_t(double p, std::size_t freedom);

constexpr double kFalseAlarms = 0.01;  // that any of a bench's comparisons calls equal settings different

struct Comparison {
  enum class Verdict { kFaster, kSlower, kEqual };
  double change = 0;         // of the value, as a share: 0.05 is 5 % more than the baseline
  double low = 0, high = 0;  // the confidence interval of the change
  double detectable = 0;     // the smallest change that 95 of 100 such benches would have found, as a share
  Verdict verdict = Verdict::kEqual;
};
const char* name(Comparison::Verdict verdict);  // "faster", "slower", "equal"

// values[i] and baseline[i]: rates of pair i, positive, at least two pairs. `comparisons`: that the bench makes in all;
// they share kFalseAlarms (Bonferroni). Throws kLogic otherwise.
Comparison compare_pairs(std::span<const double> values, std::span<const double> baseline, std::size_t comparisons);

}  // namespace drivetrain
