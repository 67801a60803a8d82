// `drivetrain trace RUN -o FILE`: the events of all ranks on one clock, for Perfetto or chrome://tracing.
#include <cstdio>

#include "launcher/commands.h"
#include "launcher/options.h"
#include "launcher/report/step_range.h"
#include "launcher/report/trace.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {

int cmd_trace(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("output,o", po::value<std::string>()->default_value("trace.json")->value_name("FILE"),
                        "where the trace goes");
  options.add_options()("steps", po::value<std::string>()->default_value("", "")->value_name("A:B"),
                        "only these steps, as in 100:120; absent: the newest 50");
  const Usage usage{"trace RUN [options]",
                    "Writes the phases and collectives of all ranks as a trace for https://ui.perfetto.dev or "
                    "chrome://tracing, on the\nclock of rank 0. RUN is a run's folder.",
                    "  drivetrain trace runs/quickstart -o trace.json\n"
                    "  drivetrain trace runs/quickstart --steps 100:120\n"};
  const auto values = parse_options(arguments, usage, options, {"run"});
  if (!values) return 0;
  if (values->count("run") == 0)
    throw Error(ErrorKind::kUsage, "no run given; name its folder, as in drivetrain trace runs/quickstart");
  const StepRange range = step_range((*values)["steps"].as<std::string>());
  const TraceRequest request{(*values)["run"].as<std::string>(), range.first, range.last,
                             (*values)["output"].as<std::string>()};
  const TraceSummary trace = write_trace(request);
  for (const std::string& remark : trace.remarks) std::printf("note: %s\n", remark.c_str());
  std::printf("%s: steps %lld to %lld (%zu with events), %zu ranks, %zu events, %zu arrows; clocks agree to %s us\n",
              request.file.c_str(), static_cast<long long>(trace.first_step), static_cast<long long>(trace.last_step),
              trace.steps, trace.clocks.size(), trace.events, trace.arrows, fixed(trace.clock_error_us(), 1).c_str());
  return 0;
}

}  // namespace drivetrain
