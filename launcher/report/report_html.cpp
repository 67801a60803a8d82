#include "launcher/report/report_html.h"

#include <algorithm>

#include "launcher/report/charts.h"
#include "launcher/report/report_tables.h"
#include "launcher/report/svg.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// A card with a heading and a sentence on how to read it; nothing without a body.
std::string card(const std::string& id, const std::string& title, const std::string& note, const std::string& body) {
  if (body.empty()) return "";
  return "<section class=\"card\" id=\"" + id + "\" aria-labelledby=\"" + id + "-title\"><h2 id=\"" + id +
         "-title\">" + escaped(title) + "</h2>\n" + (note.empty() ? "" : element("p", note, "note")) + body +
         "</section>\n";
}

std::string tile(const std::string& name, const std::string& value) {
  return "<div class=\"tile\"><dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd></div>\n";
}

// Fills that the pictures share.
std::string patterns() {
  std::string defs = "<svg width=\"0\" height=\"0\" aria-hidden=\"true\" style=\"position:absolute\"><defs>\n";
  for (const auto& [axis, colour] : {std::pair{"tp", "#a63c00"}, {"dp", "#d55e00"}, {"world", "#f08a4b"}})
    defs += std::string("<pattern id=\"hatch-") + axis +
            "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">" +
            "<rect width=\"6\" height=\"6\" fill=\"" + colour +
            "\"/><rect width=\"2\" height=\"6\" fill=\"#fff\" fill-opacity=\".45\"/></pattern>\n";
  return defs + "</defs></svg>\n";
}

std::string legend_item(const std::string& css, const std::string& text) {
  return "<li><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\"><rect width=\"14\" height=\"14\" class=\"" + css +
         "\"/></svg>" + escaped(text) + "</li>\n";
}

// Of the classes that some rank spent time in.
std::string class_legend(const RunReport& report) {
  std::string items;
  for (std::size_t c = 0; c < kTimeClasses; ++c) {
    const auto spent = [&](const RankSummary& rank) { return rank.class_ms[c] >= 0.0005 * rank.step_ms; };
    const std::string label = name(static_cast<TimeClass>(c));
    if (std::any_of(report.ranks.begin(), report.ranks.end(), spent)) items += legend_item("c-" + label, label);
  }
  return "<ul class=\"legend\">\n" + items + "</ul>\n";
}

std::string tiles(const RunReport& report) {
  const LedgerInfo& info = report.info;
  double waits = 0, step = 0;
  for (const RankSummary& rank : report.ranks) {
    waits += rank.waits_ms;
    step += rank.step_ms;
  }
  std::string text = "<dl class=\"tiles\">\n";
  text += tile("step, median", in_ms(report.judged ? report.diagnosis.step_ms : report.ranks[0].step_ms));
  text += tile("MFU", report.facts.mfu ? in_percent(*report.facts.mfu) : "no known peak");
  text += tile("tokens a second", fixed(report.tokens_per_s, 0));
  text += tile("lost by waiting", step > 0 ? in_percent(waits / step) : "-");
  text += tile("ranks, dp " + std::to_string(info.dp) + " × tp " + std::to_string(info.tp),
               std::to_string(info.world_size));
  return text + tile("steps", std::to_string(report.first_step) + " – " + std::to_string(report.last_step)) +
         "</dl>\n";
}

std::string verdict_card(const Verdict& v) {
  std::string text = "<article class=\"verdict\"><span class=\"cost\">" + in_ms(v.cost_ms) + " per step";
  if (v.mfu_points) text += ", " + fixed(*v.mfu_points, 2) + " points of MFU";
  std::string who = v.rank < 0 ? "changing ranks" : "rank " + std::to_string(v.rank);
  if (!v.host.empty()) who += " on " + v.host;
  text += "</span>\n" + element("h3", who + ": " + name(v.cause));
  text +=
      element("p", "late by " + in_ms(v.late_ms) + " per affected step (" + in_ms(v.own_ms) + " here, " +
                       in_ms(v.peers_ms) + " on the others), mostly in " + name(v.phase) + "; " + name(v.pattern) +
                       (v.pattern == Pattern::kPeriodic ? " every " + std::to_string(v.period) + " steps" : "") +
                       ", since step " + std::to_string(v.first_step) + "; confidence " + fixed(v.confidence, 2));
  std::string evidence;
  for (const std::string& line : v.evidence) evidence += element("li", line);
  if (!v.blame.empty()) evidence += element("li", "chain: " + v.blame);
  if (!evidence.empty()) text += "<ul>\n" + evidence + "</ul>\n";
  return text + element("p", "Do: " + v.action, "do") + "</article>\n";
}

std::string verdicts(const RunReport& report) {
  std::string text;
  for (const Verdict& v : report.diagnosis.verdicts) text += verdict_card(v);
  const Diagnosis& d = report.diagnosis;
  if (text.empty() && report.ranks.size() > 1 && !d.too_short)
    text = element("p", "No straggler: a rank steadily later by " + in_ms(d.detectable_ms) + " (" +
                            in_percent(d.detectable_ms / d.step_ms) + " of the step) would have shown in these " +
                            std::to_string(report.steps) + " steps.");
  return text + list(d.notes);
}

std::string changes(const RunReport& report) {
  std::vector<std::string> lines;
  for (const Change& change : report.changes)
    lines.push_back(change.what + ": up to " + in_ms(change.gain_ms) +
                    (change.mfu_points ? ", " + fixed(*change.mfu_points, 2) + " points of MFU" : "") + " (" +
                    change.why + ")");
  return list(lines);
}

std::string pair(const std::string& left, const std::string& right) {
  return left.empty() || right.empty() ? left + right : "<div class=\"pair\">\n" + left + right + "</div>\n";
}

std::string head_of(const RunReport& report) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "img-src data:\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<link rel=\"icon\" href=\"data:,\"/>\n" +
         element("title", "drivetrain: " + report.run) + "<style>" + report_style() + "</style>\n</head>\n";
}

std::string answer(const RunReport& report) {
  const bool bad = report.end.broken() || !report.diagnosis.verdicts.empty();
  std::string text = "<header>\n<h1>drivetrain diagnose " + escaped(report.run) + "<span class=\"state" +
                     (report.end.broken() ? " bad" : "") + "\">" + name(report.end.state) + "</span></h1>\n";
  text += std::string("<div class=\"card answer-card") + (bad ? " bad" : "") + "\">" +
          element("p", report.first_line(), "answer");
  if (report.end.broken() && report.judged)
    text += element("p", "Until then: " + first_line(report.diagnosis), "note");
  return text + "</div>\n</header>\n";
}

}  // namespace

std::string report_html(const RunReport& report) {
  std::string page = head_of(report) + "<body>\n" + patterns() + "<main>\n" + answer(report);
  page += card("end", "What is known of the end", "", list(report.end.account));
  page += card("limits", "What this report cannot say", "", list(report.limits));
  if (report.steps > 0) {
    page += tiles(report);
    if (report.judged)
      page += card("verdicts", "Verdicts",
                   "Who is late with its own work, why, and what the job would gain without it.", verdicts(report));
    page += card("classes", "Where the step goes",
                 "Mean step of each rank. Hatched: in a collective before its last member had come.",
                 class_bars(report) + class_legend(report) + class_table(report));
    page +=
        card("lateness", "Lateness by rank and step",
             "Each rank's own work against its peers, waiting left out: the rank that is orange holds the others up.",
             lateness_map(report));
    page += card(
        "timeline", "The longest step, " + std::to_string(report.worst.step) + ", on one clock",
        "Upper lane: phases. Lower lane: collectives, hatched while waiting." +
            (report.worst.clock_error_us > 0 ? " Clocks agree to " + fixed(report.worst.clock_error_us, 1) + " µs."
                                             : "") +
            (report.worst.dropped > 0
                 ? " " + std::to_string(report.worst.dropped) + " later events of the step were not kept."
                 : ""),
        step_timeline(report));
    page += card("waterfall", "From peak to achieved",
                 "Points of MFU lost, mean over ranks and steps; parts sum to the whole.", waterfall_chart(report));
    const std::string matrix = waiting_matrix(report);
    page += pair(card("waiting", "Who waits for whom", "Milliseconds per step.",
                      matrix.empty() ? "" : "<div class=\"matrix\">" + matrix + "</div>\n"),
                 card("collectives", "Collectives, per step",
                      "Time in flight: from the last arrival to the end, hidden behind compute or not.",
                      collective_table(report)));
    page += card("links", "How devices reach each other",
                 "NV: NVLinks between the two; else the path as nvidia-smi topo names it.", link_matrix(report));
    page += card("changes", "Worth trying", "", changes(report));
    page += card("devices", "Devices and hosts", "", list(report.device_remarks));
    page += card("incidents", "Known incidents that look like this", "", list(report.incidents));
  }
  const std::string loss = loss_chart(report), speed = mfu_chart(report);
  const bool mfu =
      std::any_of(report.curve.begin(), report.curve.end(), [](const CurvePoint& p) { return p.mfu.has_value(); });
  page += pair(card("loss", "Loss", "Dots: held-out loss.", loss),
               card("speed", mfu ? "MFU, %" : "Tokens a second",
                    "Dips: evaluation and checkpoints are not counted in, stalls are.", speed));
  return page + "<footer>" + escaped(report.info.compute + " on " + report.info.device) +
         ". Times are means per step of the steps named above unless said otherwise. docs/diagnosis.md explains each "
         "class and statistic.</footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace drivetrain
