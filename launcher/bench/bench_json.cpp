#include "launcher/bench/bench_json.h"

#include <cstdio>
#include <fstream>

#include "kernels/error.h"
#include "launcher/bench/bench_options.h"
#include "launcher/version.h"

namespace drivetrain {
namespace {

using nlohmann::ordered_json;

ordered_json maybe(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json to_json(const StepSpread& s) {
  return {{"median", s.median}, {"p10", s.p10}, {"p90", s.p90}, {"mean", s.mean}};
}

ordered_json to_json(const Waterfall& w) {
  ordered_json losses = ordered_json::array();
  for (const WaterfallRow& row : w.rows)
    losses.push_back({{"loss", name(row.loss)},
                      {"culprit", row.culprit >= 0 ? ordered_json(row.culprit) : ordered_json(nullptr)},
                      {"us", row.us},
                      {"milli_points", row.milli_points}});
  return {{"step_us", w.step_us},
          {"ideal_us", w.ideal_us},
          {"achieved_milli_points", w.achieved_milli_points},
          {"losses", losses}};
}

ordered_json to_json(const std::vector<RooflineRow>& rows) {
  ordered_json all = ordered_json::array();
  for (const RooflineRow& row : rows)
    all.push_back({{"operator", name(row.op)},
                   {"ms", row.ms},
                   {"flops_per_byte", row.flops_per_byte},
                   {"flops_per_s", row.flops_per_s},
                   {"bytes_per_s", row.bytes_per_s},
                   {"bound", row.compute_bound ? "compute" : "memory"},
                   {"share_of_bound", row.share_of_bound}});
  return all;
}

ordered_json to_json(const std::vector<StepBenchReport::Rank>& ranks) {
  ordered_json all = ordered_json::array();
  for (const auto& rank : ranks)
    all.push_back({{"rank", rank.rank},
                   {"host", rank.host},
                   {"own_ms", rank.own_ms},
                   {"waits_ms", rank.waits_ms},
                   {"transfers_ms", rank.transfer_ms},
                   {"peak_flops", rank.peak_flops > 0 ? ordered_json(rank.peak_flops) : ordered_json(nullptr)}});
  return all;
}

ordered_json verdicts_json(const Diagnosis& d) {
  ordered_json all = ordered_json::array();
  for (const Verdict& v : d.verdicts)
    all.push_back({{"rank", v.rank}, {"cause", name(v.cause)}, {"cost_ms", v.cost_ms}, {"do", v.action}});
  return all;
}

}  // namespace

ordered_json bench_json(const StepBench& bench, const StepBenchReport& report) {
  const LedgerInfo& first = bench.ledgers.front().info;
  ordered_json conventions, flops;
  for (const auto& row : report.conventions) {
    conventions[convention_name(row.convention)] = maybe(row.mfu);
    flops[convention_name(row.convention)] = row.flops_per_token;
  }
  ordered_json changes = ordered_json::array();
  for (const Change& c : report.changes)
    changes.push_back({{"do", c.what}, {"loss", c.why}, {"gain_ms", c.gain_ms}, {"mfu_points", maybe(c.mfu_points)}});
  ordered_json json = {{"schema", kBenchSchema},
                       {"version", version()},
                       {"config", bench.config},
                       {"model", bench.model},
                       {"data", bench.data},
                       {"ranks", report.ranks.size()},
                       {"dp", first.dp},
                       {"tp", first.tp},
                       {"compute", first.compute},
                       {"transport", bench.transport},
                       {"device", first.device},
                       {"load", {bench.load_before, bench.load_after}},
                       {"warmup", bench.warmup},
                       {"steps", report.steps},
                       {"tokens_per_step", report.tokens_per_step},
                       {"tokens_per_s", to_json(report.tokens_per_s)},
                       {"step_ms", to_json(report.step_ms)},
                       {"peak_flops", maybe(report.peak_flops)},
                       {"peak_source", bench.peak_source},
                       {"mfu_convention", convention_name(report.chosen.convention)},
                       {"mfu", maybe(report.chosen.mfu)},
                       {"mfu_causal", maybe(report.causal.mfu)},
                       {"mfu_full_attention", maybe(report.full.mfu)},
                       {"hfu", maybe(report.hardware.mfu)},
                       {"mfu_by_convention", conventions},
                       {"flops_per_token", flops},
                       {"waterfall", to_json(report.waterfall)},
                       {"copy_bytes_per_s", bench.copy_bytes_per_s},
                       {"operators", to_json(report.operators)},
                       {"per_rank", to_json(report.ranks)},
                       {"ranks_differ", report.ranks_differ},
                       {"verdicts", verdicts_json(report.diagnosis)},
                       {"detectable_ms", report.diagnosis.detectable_ms},
                       {"changes", changes},
                       {"feed", nullptr}};
  if (report.feed)
    json["feed"] = {{"tokens_per_s", report.feed->feed},
                    {"training_tokens_per_s", report.feed->training},
                    {"ratio", report.feed->ratio()},
                    {"limit", name(report.feed->limit())}};
  return json;
}

void write_bench_json(const ordered_json& json, const std::string& file) {
  const std::string text = json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
  if (file == "-") {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return;
  }
  std::ofstream out(file, std::ios::trunc);
  out << text << std::flush;
  if (!out) throw Error(ErrorKind::kIo, "--json " + file + ": cannot write there");
}

}  // namespace drivetrain
