#include "launcher/report/end_report.h"

#include <exception>

#include "launcher/report/report_html.h"
#include "launcher/report/step_range.h"
#include "runtime/ledger/ledger_file.h"
#include "runtime/log.h"

namespace drivetrain {

void write_end_report(const std::filesystem::path& run_folder) noexcept {
  try {
    if (!std::filesystem::exists(ledger_path(run_folder / "ledger", 0))) return;
    const RunReport report = make_report({run_folder.string()});
    if (report.steps == 0) return;
    const std::filesystem::path file = run_folder / "report.html";
    write_whole_file(file, report_html(report));
    log_info("report: " + report.first_line() + " (" + file.string() + ")");
  } catch (const std::exception& error) {
    log_warn(std::string("no report: ") + error.what());
  }
}

}  // namespace drivetrain
