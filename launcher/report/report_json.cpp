#include "launcher/report/report_json.h"

#include <nlohmann/json.hpp>

namespace drivetrain {
namespace {

using Json = nlohmann::ordered_json;

Json optional(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json verdict_json(const Verdict& v) {
  return {{"rank", v.rank < 0 ? Json(nullptr) : Json(v.rank)},
          {"host", v.host},
          {"cause", name(v.cause)},
          {"phase", name(v.phase)},
          {"pattern", name(v.pattern)},
          {"period", v.pattern == Pattern::kPeriodic ? Json(v.period) : Json(nullptr)},
          {"first_step", v.first_step},
          {"late_ms", v.late_ms},
          {"own_ms", v.own_ms},
          {"peers_ms", v.peers_ms},
          {"cost_ms", v.cost_ms},
          {"mfu_points", optional(v.mfu_points)},
          {"confidence", v.confidence},
          {"evidence", v.evidence},
          {"blame", v.blame},
          {"action", v.action}};
}

Json rank_json(const RankSummary& r) {
  Json classes = Json::object(), ops = Json::object();
  for (std::size_t c = 0; c < kTimeClasses; ++c) classes[name(static_cast<TimeClass>(c))] = r.class_ms[c];
  for (std::size_t k = 0; k < kOpClasses; ++k)
    ops[name(static_cast<OpClass>(k))] = {
        {"ms", static_cast<double>(r.ops[k].ns) * kMsPerNs}, {"flops", r.ops[k].flops}, {"bytes", r.ops[k].bytes}};
  return {{"rank", r.rank},
          {"host", r.host},
          {"device", r.device},
          {"step_ms", r.step_ms},
          {"classes_ms", std::move(classes)},
          {"residual_ms", r.residual_ms},
          {"waits_ms", r.waits_ms},
          {"caused_ms", r.caused_ms},
          {"load", r.load},
          {"tokens", r.tokens},
          {"busy", r.busy},
          {"run_delay_ms", r.run_delay_ms},
          {"major_faults", r.major_faults},
          {"ledger_ms", r.ledger_ms},
          {"operators", std::move(ops)}};
}

Json waterfall_json(const Waterfall& w) {
  Json rows = Json::array();
  for (const WaterfallRow& row : w.rows)
    rows.push_back({{"loss", name(row.loss)},
                    {"culprit", row.culprit < 0 ? Json(nullptr) : Json(row.culprit)},
                    {"us", row.us},
                    {"milli_points", row.milli_points}});
  return {{"step_us", w.step_us},
          {"ideal_us", w.ideal_us},
          {"achieved_milli_points", w.achieved_milli_points},
          {"losses", std::move(rows)}};
}

Json waiting_json(const RunReport& report) {
  Json rows = Json::array();
  const std::size_t n = report.ranks.size();
  for (std::size_t r = 0; r < n && !report.waiting_ms.empty(); ++r)
    for (std::size_t c = 0; c < n; ++c)
      if (report.waiting_ms[r * n + c] > 0)
        rows.push_back(
            {{"rank", report.ranks[r].rank}, {"for", report.ranks[c].rank}, {"ms", report.waiting_ms[r * n + c]}});
  return rows;
}

}  // namespace

std::string report_json(const RunReport& report) {
  const LedgerInfo& info = report.info;
  const Diagnosis& d = report.diagnosis;
  Json json = {{"schema", kReportSchema},
               {"run", report.run},
               {"first_line", report.first_line()},
               {"state", name(report.end.state)},
               {"exit_code", report.end.exit_code},
               {"idle_s", report.end.idle_s < 0 ? Json(nullptr) : Json(report.end.idle_s)},
               {"end", {{"cause", report.end.cause}, {"account", report.end.account}}},
               {"limits", report.limits},
               {"world", info.world_size},
               {"dp", info.dp},
               {"tp", info.tp},
               {"compute", info.compute},
               {"steps", {{"first", report.first_step}, {"last", report.last_step}, {"count", report.steps}}},
               {"judged", report.judged},
               {"step_ms", d.step_ms},
               {"tokens_per_s", report.tokens_per_s},
               {"mfu", optional(report.facts.mfu)},
               {"detectable_ms", d.detectable_ms},
               {"too_short", d.too_short},
               {"notes", d.notes}};
  json["verdicts"] = Json::array();
  for (const Verdict& v : d.verdicts) json["verdicts"].push_back(verdict_json(v));
  json["ranks"] = Json::array();
  for (const RankSummary& r : report.ranks) json["ranks"].push_back(rank_json(r));
  json["waiting"] = waiting_json(report);
  json["collectives"] = Json::array();
  for (const LinkSummary& link : report.links)
    json["collectives"].push_back({{"axis", name(link.axis)},
                                   {"ranks", link.ranks},
                                   {"calls", link.calls},
                                   {"bytes", link.bytes},
                                   {"in_flight_ms", link.in_flight_ms},
                                   {"gb_per_s", link.gb_per_s()}});
  json["waterfall"] = waterfall_json(report.waterfall);
  json["changes"] = Json::array();
  for (const Change& change : report.changes)
    json["changes"].push_back({{"what", change.what},
                               {"why", change.why},
                               {"gain_ms", change.gain_ms},
                               {"mfu_points", optional(change.mfu_points)}});
  json["remarks"] = {
      {"links", report.link_remarks}, {"devices", report.device_remarks}, {"incidents", report.incidents}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace drivetrain
