// A report as one page for browsers: a single file without scripts that loads nothing, so it opens offline and from a
// mail. Light and dark, printable, readable by a screen reader, colours that the colour-blind can tell apart.
#pragma once
#include <string>

#include "launcher/report/run_report.h"

namespace drivetrain {

std::string report_html(const RunReport& report);
const char* report_style();  // CSS of the page

}  // namespace drivetrain
