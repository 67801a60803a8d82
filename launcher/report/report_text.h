// A report for terminals: at most 100 columns, no colours.
#pragma once
#include <string>

#include "launcher/report/run_report.h"

namespace drivetrain {

std::string report_text(const RunReport& report);
// All that is known of one world rank. Throws kUsage naming the ranks there are.
std::string rank_text(const RunReport& report, int rank);

}  // namespace drivetrain
