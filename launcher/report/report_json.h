// A report for programs. The keys are listed in docs/report.md and do not change within a schema version.
#pragma once
#include <string>

#include "launcher/report/run_report.h"

namespace drivetrain {

constexpr const char* kReportSchema = "drivetrain.diagnosis/1";
// One JSON object, indented, with a newline at the end.
std::string report_json(const RunReport& report);

}  // namespace drivetrain
