// drivetrain ledger dump: what the step ledger of a run says, as a table or as JSON.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "launcher/commands.h"
#include "launcher/options.h"
#include "runtime/ledger/ledger_file.h"

namespace drivetrain {
namespace {

using nlohmann::ordered_json;

double ms(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

double tokens_per_s(const StepRecord& r) {
  return r.wall_ns > 0 ? static_cast<double>(r.tokens) * 1e9 / static_cast<double>(r.wall_ns) : 0;
}

ordered_json to_json(const StepRecord& r) {
  ordered_json classes, ops, axes;
  for (std::size_t i = 0; i < kTimeClasses; ++i)
    classes[std::string(name(static_cast<TimeClass>(i))) + "_ms"] = ms(r.class_ns[i]);
  for (std::size_t i = 0; i < kOpClasses; ++i)
    ops[name(static_cast<OpClass>(i))] = {
        {"time_ms", ms(r.ops[i].ns)}, {"flops", r.ops[i].flops}, {"bytes", r.ops[i].bytes}};
  for (std::size_t i = 0; i < kCommAxes; ++i) {
    const AxisTotals& a = r.axes[i];
    axes[name(static_cast<CommAxis>(i))] = {{"calls", a.calls},
                                            {"bytes", a.bytes},
                                            {"in_flight_ms", ms(a.in_flight_ns)},
                                            {"culprit", a.culprit},
                                            {"culprit_ms", ms(a.culprit_ns)}};
  }
  return {{"step", r.step},
          {"begin_ns", r.begin_ns},
          {"wall_ms", ms(r.wall_ns)},
          {"classes", classes},
          {"residual_ms", ms(r.residual_ns())},
          {"tokens", r.tokens},
          {"tokens_per_s", tokens_per_s(r)},
          {"own_tokens", r.own_tokens},
          {"own_length_squares", r.own_length_squares},
          {"ops", ops},
          {"axes", axes},
          {"cpu_ms", ms(r.cpu_ns)},
          {"run_delay_ms", ms(r.run_delay_ns)},
          {"major_faults", r.major_faults},
          {"minor_faults", r.minor_faults},
          {"ledger_ms", ms(r.ledger_ns)}};
}

ordered_json to_json(const RankLedger& ledger) {
  const LedgerInfo& i = ledger.info;
  ordered_json steps = ordered_json::array();
  for (const StepRecord& r : ledger.records) steps.push_back(to_json(r));
  return {{"world_rank", i.world_rank},
          {"world_size", i.world_size},
          {"dp", i.dp},
          {"tp", i.tp},
          {"host", i.host},
          {"device", i.device},
          {"compute", i.compute},
          {"threads", i.threads},
          {"flops_per_token", i.flops_per_token},
          {"peak_flops", i.peak_flops},
          {"resumed_after", i.resumed_after},
          {"steps", steps}};
}

// Milliseconds per class; classes that no step used are left out.
void print_table(const RankLedger& ledger) {
  const LedgerInfo& i = ledger.info;
  std::printf("rank %d of %d (dp %d, tp %d) on %s: %s, %s, %d thread%s\n", i.world_rank, i.world_size,
              i.world_rank / i.tp, i.world_rank % i.tp, i.host.c_str(), i.device.c_str(), i.compute.c_str(),
              i.threads, i.threads == 1 ? "" : "s");
  StepRecord sum;
  for (const StepRecord& r : ledger.records) {
    for (std::size_t c = 0; c < kTimeClasses; ++c) sum.class_ns[c] += r.class_ns[c];
    sum.wall_ns += r.wall_ns;
    sum.tokens += r.tokens;
    sum.ledger_ns += r.ledger_ns;
  }
  if (sum.wall_ns == 0) {
    std::printf("no whole step yet\n");
    return;
  }
  std::vector<std::size_t> used;
  for (std::size_t c = 0; c < kTimeClasses; ++c)
    if (sum.class_ns[c] != 0) used.push_back(c);
  const auto width = [](std::size_t c) {
    return std::max(9, static_cast<int>(std::string(name(static_cast<TimeClass>(c))).size()) + 1);
  };
  std::printf("%9s%10s", "step", "wall ms");
  for (const std::size_t c : used) std::printf("%*s", width(c), name(static_cast<TimeClass>(c)));
  std::printf("%10s%12s\n", "residual", "tokens/s");
  for (const StepRecord& r : ledger.records) {
    std::printf("%9lld%10.2f", static_cast<long long>(r.step), ms(r.wall_ns));
    for (const std::size_t c : used) std::printf("%*.2f", width(c), ms(r.class_ns[c]));
    std::printf("%10.3f%12.0f\n", ms(r.residual_ns()), tokens_per_s(r));
  }
  const double whole = static_cast<double>(sum.wall_ns);
  const auto share = [whole](std::int64_t ns) { return 100 * static_cast<double>(ns) / whole; };
  std::printf("%9s%10.2f", "all, %", 100.0);
  for (const std::size_t c : used) std::printf("%*.2f", width(c), share(sum.class_ns[c]));
  std::printf("%10.3f%12.0f\n", share(sum.residual_ns()), tokens_per_s(sum));
  std::printf("keeping the ledger took %.3f %% of the time (estimated)\n", share(sum.ledger_ns));
}

std::vector<RankLedger> read(const std::string& path, std::int64_t rank, std::int64_t last) {
  if (!std::filesystem::exists(path)) throw Error(ErrorKind::kUsage, path + " does not exist");
  std::vector<RankLedger> ranks;
  if (std::filesystem::is_directory(path))
    ranks = read_run_ledger(path, last);
  else
    ranks.push_back(read_ledger(path, last));
  if (rank < 0) return ranks;
  std::erase_if(ranks, [rank](const RankLedger& ledger) { return ledger.info.world_rank != rank; });
  if (ranks.empty()) throw Error(ErrorKind::kUsage, path + " has no ledger of rank " + std::to_string(rank));
  return ranks;
}

}  // namespace

int cmd_ledger(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("rank", po::value<std::int64_t>()->default_value(-1)->value_name("R"),
                        "only this world rank (-1: all)")(
      "last", po::value<std::int64_t>()->default_value(0)->value_name("N"), "only the newest N steps (0: all)")(
      "json", "one JSON object instead of tables");
  const Usage usage{
      "ledger dump RUN_OR_FILE [options]",
      "Prints where the time of each step went on each rank, in milliseconds per class, from a run folder "
      "or a rank's file. The classes and the residual sum to the step's wall time.",
      "  drivetrain ledger dump runs/quickstart --last 10\n"
      "  drivetrain ledger dump runs/quickstart --rank 1 --json\n"};
  const auto values = parse_options(arguments, usage, options, {"action", "path"});
  if (!values) return 0;
  if (!values->count("action") || !values->count("path") || (*values)["action"].as<std::string>() != "dump")
    throw Error(ErrorKind::kUsage, "ledger wants: dump RUN_OR_FILE");
  const auto last = (*values)["last"].as<std::int64_t>();
  if (last < 0) throw Error(ErrorKind::kUsage, "--last = " + std::to_string(last) + ": must be 0 (all) or more");
  const auto ranks = read((*values)["path"].as<std::string>(), (*values)["rank"].as<std::int64_t>(), last);
  if (values->count("json")) {
    ordered_json all = ordered_json::array();
    for (const RankLedger& ledger : ranks) all.push_back(to_json(ledger));
    std::printf("%s\n", ordered_json{{"ranks", all}}.dump(1).c_str());
    return 0;
  }
  for (const RankLedger& ledger : ranks) print_table(ledger);
  return 0;
}

}  // namespace drivetrain
