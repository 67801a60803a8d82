// The tables and plain elements of the HTML page. All text is escaped.
#pragma once
#include <string>
#include <vector>

#include "launcher/report/run_report.h"

namespace drivetrain {

std::string element(const std::string& tag, const std::string& text, const std::string& css = "");
std::string list(const std::vector<std::string>& lines);  // empty without lines

std::string class_table(const RunReport& report);  // folded: ranks x time classes
std::string collective_table(const RunReport& report);
std::string link_matrix(const RunReport& report);  // empty unless devices were monitored

}  // namespace drivetrain
