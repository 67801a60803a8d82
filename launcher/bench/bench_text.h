// A measurement for terminals: at most 100 columns, no colours.
#pragma once
#include <string>

#include "launcher/bench/bench_report.h"

namespace drivetrain {

std::string bench_text(const StepBench& bench, const StepBenchReport& report);

// 12345678, "FLOP" -> "12.3 MFLOP".
std::string in_si(double value, const std::string& unit);

}  // namespace drivetrain
