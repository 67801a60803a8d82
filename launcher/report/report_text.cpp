#include "launcher/report/report_text.h"

#include <algorithm>
#include <numeric>

#include "kernels/error.h"
#include "launcher/report/wrap.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

constexpr std::size_t kMostRanks = 32;    // lines of the table
constexpr std::size_t kMostColumns = 11;  // shares, so that the table fits

struct Column {
  const char* label;
  std::vector<TimeClass> classes;  // none: what is in no class
};
// All axes together: --rank and the JSON have them apart.
const std::vector<Column>& columns() {
  using enum TimeClass;
  static const std::vector<Column> all{{"data", {kDataWait}},
                                       {"copy", {kCopy}},
                                       {"fwd", {kForward}},
                                       {"bwd", {kBackward}},
                                       {"reco", {kRecompute}},
                                       {"opt", {kOptimizer}},
                                       {"wait", {kTpWait, kDpWait, kWorldWait}},
                                       {"comm", {kTpTransfer, kDpTransfer, kWorldTransfer}},
                                       {"gap", {kHostGap}},
                                       {"ckpt", {kCheckpoint}},
                                       {"eval", {kEval}},
                                       {"other", {kOther}},
                                       {"resid", {}}};
  return all;
}

double share(const RankSummary& rank, const Column& column) {
  if (rank.step_ms <= 0) return 0;
  if (column.classes.empty()) return rank.residual_ms / rank.step_ms;
  double ms = 0;
  for (const TimeClass c : column.classes) ms += rank.class_ms[static_cast<std::size_t>(c)];
  return ms / rank.step_ms;
}

// Columns that say something on some rank; the residual always.
std::vector<const Column*> worth_showing(const RunReport& report) {
  std::vector<std::pair<double, const Column*>> by_share;
  for (const Column& column : columns()) {
    double largest = column.classes.empty() ? 1 : 0;
    for (const RankSummary& rank : report.ranks) largest = std::max(largest, share(rank, column));
    if (largest >= 0.0005) by_share.emplace_back(largest, &column);
  }
  std::stable_sort(by_share.begin(), by_share.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (by_share.size() > kMostColumns) by_share.resize(kMostColumns);
  std::vector<const Column*> shown;
  for (const auto& [largest, column] : by_share) shown.push_back(column);
  std::sort(shown.begin(), shown.end());  // they lie in one vector: back into its order
  return shown;
}

std::string rank_table(const RunReport& report) {
  const std::vector<const Column*> shown = worth_showing(report);
  std::string text = "rank  step ms   waits  caused |";
  for (const Column* column : shown) text += right_aligned(column->label, 6);
  text += "\n";
  for (const RankSummary* rank : notable_ranks(report, kMostRanks)) {
    text += right_aligned(std::to_string(rank->rank), 4) + right_aligned(fixed(rank->step_ms, 1), 9) +
            right_aligned(fixed(rank->waits_ms, 1), 8) + right_aligned(fixed(rank->caused_ms, 1), 8) + " |";
    for (const Column* column : shown) {
      const double percent = 100 * share(*rank, *column);
      text += right_aligned(fixed(percent, column->classes.empty() && percent < 10 ? 2 : 1), 6);
    }
    text += "\n";
  }
  if (report.ranks.size() > kMostRanks)
    text += "... and " + std::to_string(report.ranks.size() - kMostRanks) + " more; --rank N shows one of them\n";
  return text + wrapped("",
                        "waits: ms per step in collectives for ranks that came later. caused: ms per step that the "
                        "others together waited for this rank. Right of the bar: % of the step.");
}

std::string verdict_text(const Verdict& v, std::size_t number) {
  std::string head = v.rank < 0 ? "changing ranks" : "rank " + std::to_string(v.rank);
  if (!v.host.empty()) head += " (" + v.host + ")";
  head += ": " + std::string(name(v.cause)) + " in " + name(v.phase) + ", " + name(v.pattern);
  if (v.pattern == Pattern::kPeriodic) head += " every " + std::to_string(v.period) + " steps";
  head += ", since step " + std::to_string(v.first_step) + "; costs " + in_ms(v.cost_ms) + " per step";
  if (v.mfu_points) head += ", " + fixed(*v.mfu_points, 2) + " points of MFU";
  std::string text = wrapped(" " + std::to_string(number) + ". ", head);
  text += wrapped("    late      ", in_ms(v.late_ms) + " per affected step: " + in_ms(v.own_ms) + " here, " +
                                        in_ms(v.peers_ms) + " on the others; confidence " + fixed(v.confidence, 2));
  for (const std::string& line : v.evidence) text += wrapped("    evidence  ", line);
  if (!v.blame.empty()) text += wrapped("    chain     ", v.blame);
  return text + wrapped("    do        ", v.action);
}

std::string verdicts_text(const RunReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.diagnosis.verdicts.size(); ++i)
    text += verdict_text(report.diagnosis.verdicts[i], i + 1);
  if (text.empty() && report.ranks.size() > 1 && !report.diagnosis.too_short)
    text = wrapped(" ", "no straggler: a rank steadily later by " + in_ms(report.diagnosis.detectable_ms) + " (" +
                            in_percent(report.diagnosis.detectable_ms / report.diagnosis.step_ms) +
                            " of the step) would have shown in these " + std::to_string(report.steps) + " steps");
  for (const std::string& note : report.diagnosis.notes) text += wrapped(" note: ", note);
  return text;
}

std::string work_text(const RunReport& report) {
  const auto less = [](const RankSummary& a, const RankSummary& b) { return a.load < b.load; };
  const auto [least, most] = std::minmax_element(report.ranks.begin(), report.ranks.end(), less);
  if (report.ranks.size() < 2 || most->load - least->load < 0.01)
    return wrapped(" ", "equal: ranks differ by less than 1 % in what they compute");
  return wrapped(" ", "unequal: rank " + std::to_string(most->rank) + " computes " + fixed(most->load, 3) +
                          " x the mean, rank " + std::to_string(least->rank) + " " + fixed(least->load, 3) + " x");
}

std::string group_text(const LinkSummary& link) {
  std::string ranks;
  for (std::size_t i = 0; i < std::min<std::size_t>(link.ranks.size(), 8); ++i)
    ranks += (i ? "," : "") + std::to_string(link.ranks[i]);
  return padded(name(link.axis), 6) + padded("{" + ranks + (link.ranks.size() > 8 ? ",..." : "") + "}", 26);
}

std::string links_text(const RunReport& report) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(report.links.size(), 16); ++i) {
    const LinkSummary& link = report.links[i];
    text += " " + group_text(link) + right_aligned(fixed(link.calls, 1), 8) + " calls" +
            right_aligned(fixed(link.bytes * 1e-6, 3), 12) + " MB" + right_aligned(fixed(link.in_flight_ms, 2), 10) +
            " ms in flight" + right_aligned(fixed(link.gb_per_s(), 2), 8) + " GB/s\n";
  }
  for (const std::string& remark : report.link_remarks) text += wrapped(" ! ", remark);
  return text;
}

std::string waterfall_text(const RunReport& report) {
  const Waterfall& w = report.waterfall;
  if (w.step_us == 0) return "";
  const auto line = [&](const std::string& label, std::int64_t us, std::int64_t milli_points) {
    const double points = static_cast<double>(milli_points) * 1e-3;
    const auto bar = static_cast<std::size_t>(std::clamp(points * 0.4, 0.0, 40.0) + 0.5);
    return " " + padded(label, 30) + right_aligned(fixed(static_cast<double>(us) * 1e-3, 3), 11) + " ms" +
           right_aligned(fixed(points, 3), 9) + (bar > 0 ? "  " + std::string(bar, '#') : "") + "\n";
  };
  std::string text;
  for (const WaterfallRow& row : w.rows)
    if (row.us != 0) text += line(row.label(), row.us, row.milli_points);
  if (w.ideal_us > 0) text += line("= achieved (MFU)", w.ideal_us, w.achieved_milli_points);
  return text + line("sum: the step", w.step_us, 100000);
}

std::string section(const std::string& title, const std::string& body) {
  return body.empty() ? "" : "\n" + title + "\n" + body;
}

std::string list(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += wrapped(" - ", line);
  return text;
}

}  // namespace

std::string report_text(const RunReport& report) {
  const LedgerInfo& info = report.info;
  std::string head = report.run + ", " + name(report.end.state) + ": ";
  if (report.steps > 0)
    head += "steps " + std::to_string(report.first_step) + " to " + std::to_string(report.last_step) + " of " +
            std::to_string(info.world_size) + (info.world_size == 1 ? " rank" : " ranks") + " (dp " +
            std::to_string(info.dp) + " x tp " + std::to_string(info.tp) + ", " + info.compute + ", " + info.device +
            ")";
  else
    head += "no steps of all ranks";
  std::string text = wrapped("", head) + "\n" + wrapped("", report.first_line());
  if (report.end.broken() && report.judged) text += wrapped("", "Until then: " + first_line(report.diagnosis));
  text += section("what is known of the end", list(report.end.account));
  text += section("what this report cannot say", list(report.limits));
  if (report.steps == 0) return text;
  text += "\nstep " + in_ms(report.judged ? report.diagnosis.step_ms : report.ranks[0].step_ms) + ", " +
          fixed(report.tokens_per_s, 0) + " tokens/s" +
          (report.facts.mfu ? ", MFU " + in_percent(*report.facts.mfu) : ", no MFU without a known peak") + "\n\n";
  text += rank_table(report);
  if (!report.judged) return text;
  text += section("verdicts", verdicts_text(report));
  text += section("work", work_text(report));
  text += section("collectives, per step, by group", links_text(report));
  text += section("from peak to achieved: ms per step, mean over ranks, and points of MFU", waterfall_text(report));
  std::string changes;
  for (const Change& change : report.changes)
    changes += wrapped(" - ", change.what + ": up to " + in_ms(change.gain_ms) +
                                  (change.mfu_points ? ", " + fixed(*change.mfu_points, 2) + " points of MFU" : "") +
                                  " (" + change.why + ")");
  text += section("worth trying", changes);
  text += section("devices and hosts", list(report.device_remarks));
  return text + section("known incidents that look like this", list(report.incidents));
}

std::string rank_text(const RunReport& report, int rank) {
  const auto found = std::find_if(report.ranks.begin(), report.ranks.end(),
                                  [&](const RankSummary& one) { return one.rank == rank; });
  if (found == report.ranks.end())
    throw Error(ErrorKind::kUsage, "--rank " + std::to_string(rank) + ": " + report.run + " has rows of ranks " +
                                       std::to_string(report.ranks.front().rank) + " to " +
                                       std::to_string(report.ranks.back().rank));
  const RankSummary& r = *found;
  std::string text = wrapped("", "rank " + std::to_string(rank) + " on " + r.host + ", " + r.device);
  text += "\nclass                 ms per step       %\n";
  const auto line = [&](const std::string& label, double ms) {
    return padded(label, 20) + right_aligned(fixed(ms, 3), 13) +
           right_aligned(fixed(r.step_ms > 0 ? 100 * ms / r.step_ms : 0, 2), 8) + "\n";
  };
  for (std::size_t c = 0; c < kTimeClasses; ++c)
    if (r.class_ms[c] != 0) text += line(name(static_cast<TimeClass>(c)), r.class_ms[c]);
  text += line("in no class", r.residual_ms) + line("step", r.step_ms);
  text += "\noperators             ms per step   GFLOP/s     GB/s\n";
  for (std::size_t k = 0; k < kOpClasses; ++k) {
    const double ns = static_cast<double>(r.ops[k].ns);
    if (ns > 0)
      text += padded(name(static_cast<OpClass>(k)), 20) + right_aligned(fixed(ns * 1e-6, 3), 13) +
              right_aligned(fixed(r.ops[k].flops / ns, 1), 10) + right_aligned(fixed(r.ops[k].bytes / ns, 2), 9) +
              "\n";
  }
  text += "\n" + wrapped("", "thread ran " + in_percent(r.busy) + " of the step and was ready without a core for " +
                                 in_ms(r.run_delay_ms) + "; " + fixed(r.major_faults, 1) + " major page faults; " +
                                 fixed(r.load, 3) + " x the mean work, " + fixed(r.tokens, 0) +
                                 " tokens of its own; keeping the ledger cost " + in_ms(r.ledger_ms));
  const std::size_t row = static_cast<std::size_t>(found - report.ranks.begin()), n = report.ranks.size();
  for (std::size_t c = 0; c < n; ++c)
    if (report.steps > 0 && report.waiting_ms[row * n + c] >= 0.005)
      text += "waits " + in_ms(report.waiting_ms[row * n + c]) + " per step for rank " +
              std::to_string(report.ranks[c].rank) + "\n";
  return text;
}

}  // namespace drivetrain
