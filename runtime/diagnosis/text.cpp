#include "runtime/diagnosis/text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace drivetrain {

std::string fixed(double value, int digits) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

std::string in_ms(double ms) {
  const double size = std::abs(ms);
  return fixed(ms, size >= 100 ? 0 : size >= 1 ? 1 : 2) + " ms";
}

std::string in_percent(double share) {
  return fixed(100 * share, std::abs(share) >= 0.1 ? 0 : 1) + " %";
}

}  // namespace drivetrain
