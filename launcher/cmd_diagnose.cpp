// `drivetrain diagnose RUN`: who holds the job up, why, what it costs, and what to do; from the ledger of a run that is
// running, over or dead.
#include <cstdio>

#include "launcher/commands.h"
#include "launcher/options.h"
#include "launcher/report/report_html.h"
#include "launcher/report/report_json.h"
#include "launcher/report/report_text.h"
#include "launcher/report/step_range.h"

namespace drivetrain {

int cmd_diagnose(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("steps", po::value<std::string>()->default_value("", "")->value_name("A:B"),
                        "only these steps, as in 100:200, 100: or :200; absent: the newest 2000");
  options.add_options()("rank", po::value<int>()->value_name("R"), "everything about one world rank");
  options.add_options()("json", po::value<std::string>()->implicit_value("-", "")->value_name("FILE"),
                        "JSON to FILE, without FILE instead of the text");
  options.add_options()("html", po::value<std::string>()->value_name("FILE"), "a page with charts, one file");
  const Usage usage{"diagnose RUN [options]",
                    "Says in the first line who holds the ranks of a run up, then why, what it costs and what to do. "
                    "RUN is a run's\nfolder; the job may still be running, or be dead.",
                    "  drivetrain diagnose runs/quickstart\n"
                    "  drivetrain diagnose runs/quickstart --steps 100: --html report.html\n"
                    "  drivetrain diagnose runs/quickstart --json | jq .verdicts\n"};
  const auto values = parse_options(arguments, usage, options, {"run"});
  if (!values) return 0;
  if (values->count("run") == 0)
    throw Error(ErrorKind::kUsage, "no run given; name its folder, as in drivetrain diagnose runs/quickstart");
  ReportRequest request{(*values)["run"].as<std::string>()};
  const StepRange range = step_range((*values)["steps"].as<std::string>());
  request.first_step = range.first;
  request.last_step = range.last;
  const RunReport report = make_report(request);
  if (values->count("html") > 0) write_whole_file((*values)["html"].as<std::string>(), report_html(report));
  const std::string json = values->count("json") > 0 ? (*values)["json"].as<std::string>() : "";
  if (!json.empty() && json != "-") write_whole_file(json, report_json(report));
  std::fputs((json == "-"                 ? report_json(report)
              : values->count("rank") > 0 ? rank_text(report, (*values)["rank"].as<int>())
                                          : report_text(report))
                 .c_str(),
             stdout);
  return 0;
}

}  // namespace drivetrain
