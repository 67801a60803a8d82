// Numbers as a report writes them.
#pragma once
#include <string>

namespace drivetrain {

std::string fixed(double value, int digits);
std::string in_ms(double ms);          // "310 ms", "4.1 ms", "0.32 ms": about three digits
std::string in_percent(double share);  // 0.613 -> "61 %", 0.031 -> "3.1 %"

}  // namespace drivetrain
