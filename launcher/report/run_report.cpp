#include "launcher/report/run_report.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "launcher/report/run_files.h"
#include "launcher/report/run_machine.h"
#include "runtime/diagnosis/lateness.h"
#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/straggler.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

constexpr std::size_t kJudgedSteps = 50;  // at a time: a fault may come and go
constexpr std::size_t kMapColumns = 240, kCurvePoints = 1000;
// A group whose data moved this much slower than the median group of its axis is named.
constexpr double kSlowLink = 0.7;

double ms(std::int64_t ns) {
  return static_cast<double>(ns) * kMsPerNs;
}

RankSummary summary_of(const RankLedger& ledger, std::span<const StepRecord> rows) {
  RankSummary s;
  s.rank = ledger.info.world_rank;
  s.host = ledger.info.host;
  s.device = ledger.info.device;
  if (rows.empty()) return s;
  const double n = static_cast<double>(rows.size());
  double wall = 0, cpu = 0;
  for (const StepRecord& row : rows) {
    wall += ms(row.wall_ns);
    cpu += ms(row.cpu_ns);
    s.residual_ms += ms(row.residual_ns()) / n;
    s.waits_ms += wait_ms(row) / n;
    s.tokens += static_cast<double>(row.own_tokens) / n;
    s.run_delay_ms += ms(row.run_delay_ns) / n;
    s.major_faults += static_cast<double>(row.major_faults) / n;
    s.ledger_ms += ms(row.ledger_ns) / n;
    for (std::size_t c = 0; c < kTimeClasses; ++c) s.class_ms[c] += ms(row.class_ns[c]) / n;
    for (std::size_t k = 0; k < kOpClasses; ++k) {
      s.ops[k].ns += row.ops[k].ns;
      s.ops[k].flops += row.ops[k].flops / n;
      s.ops[k].bytes += row.ops[k].bytes / n;
    }
  }
  for (OpTotals& op : s.ops) op.ns /= static_cast<std::int64_t>(rows.size());
  s.step_ms = wall / n;
  s.busy = wall > 0 ? cpu / wall : 0;
  return s;
}

// Whom each rank waited for. Fills caused_ms from it.
void add_waiting(RunReport& report, const Window& window) {
  const std::size_t ranks = report.ranks.size();
  report.waiting_ms.assign(ranks * ranks, 0);
  const auto place_of = [&](int world_rank) {
    const auto is_it = [&](const RankSummary& s) { return s.rank == world_rank; };
    return static_cast<std::size_t>(std::find_if(report.ranks.begin(), report.ranks.end(), is_it) -
                                    report.ranks.begin());
  };
  for (std::size_t r = 0; r < ranks; ++r)
    for (const StepRecord& row : window.ranks[r])
      for (const AxisTotals& axis : row.axes) {
        const std::size_t culprit = axis.culprit < 0 ? ranks : place_of(axis.culprit);
        if (culprit < ranks)
          report.waiting_ms[r * ranks + culprit] += ms(axis.culprit_ns) / static_cast<double>(window.steps());
      }
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t c = 0; c < ranks; ++c)
      if (c != r) report.ranks[c].caused_ms += report.waiting_ms[r * ranks + c];
}

// Members of a group see the same transfers; the mean over them is the group's.
void add_links(RunReport& report, const Window& window) {
  for (std::size_t a = 0; a < kCommAxes; ++a) {
    const auto axis = static_cast<CommAxis>(a);
    std::vector<LinkSummary> links;
    std::vector<double> speeds;
    for (int r = 0; r < window.size(); ++r) {
      const std::vector<int> group = group_of(window, axis, r);
      if (group.size() < 2 || group.front() != r) continue;
      LinkSummary link{axis, group};
      const double n = static_cast<double>(group.size() * window.steps());
      for (const int member : group)
        for (const StepRecord& row : window.ranks[static_cast<std::size_t>(member)]) {
          link.calls += row.axes[a].calls / n;
          link.bytes += static_cast<double>(row.axes[a].bytes) / n;
          link.in_flight_ms += ms(row.axes[a].in_flight_ns) / n;
        }
      if (link.calls == 0) continue;
      speeds.push_back(link.gb_per_s());
      links.push_back(std::move(link));
    }
    const double usual = median(speeds);
    for (const LinkSummary& link : links)
      if (links.size() > 2 && link.gb_per_s() < kSlowLink * usual)
        report.link_remarks.push_back(std::string(name(axis)) + " group of rank " +
                                      std::to_string(link.ranks.front()) + " moves " + fixed(link.gb_per_s(), 2) +
                                      " GB/s, the median group " + fixed(usual, 2) +
                                      ": look at the links between its hosts");
    report.links.insert(report.links.end(), links.begin(), links.end());
  }
}

void add_lateness(RunReport& report, const Lateness& late, const Window& window) {
  LatenessMap& map = report.lateness;
  const std::size_t width = (late.steps() + kMapColumns - 1) / kMapColumns;
  map.columns = (late.steps() + width - 1) / width;
  for (std::size_t c = 0; c < map.columns; ++c) map.first_step.push_back(window.ranks[0][c * width].step);
  for (int r = 0; r < late.ranks(); ++r)
    for (std::size_t c = 0; c < map.columns; ++c) {
      const auto excess = late.excess(r, Signal::kTotal);
      map.ms.push_back(mean(excess.subspan(c * width, std::min(width, late.steps() - c * width))));
    }
}

void add_speed(RunReport& report, const Window& window) {
  double wall_s = 0, tokens = 0;
  for (const StepRecord& row : window.ranks[0]) {
    wall_s += ms(row.wall_ns) * 1e-3;
    tokens += static_cast<double>(row.tokens);
  }
  report.tokens_per_s = wall_s > 0 ? tokens / wall_s : 0;
  const double peak = report.info.peak_flops * report.info.world_size;
  if (peak > 0 && report.info.flops_per_token > 0)
    report.facts.mfu = report.tokens_per_s * report.info.flops_per_token / peak;
}

double idle_seconds(const std::vector<RankLedger>& ledgers) {
  double idle = -1;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  for (const RankLedger& ledger : ledgers) {
    if (ledger.info.unix_ns == 0 || ledger.records.empty()) continue;
    const StepRecord& row = ledger.records.back();
    const std::int64_t ended = row.begin_ns + row.wall_ns - ledger.info.steady_ns + ledger.info.unix_ns;
    const double since = 1e-9 * static_cast<double>(std::chrono::nanoseconds(now).count() - ended);
    idle = idle < 0 ? since : std::min(idle, since);
  }
  return idle;
}

// Ranks that wrote fewer steps than others: where a run stopped.
void add_last_steps(RunReport& report, const std::vector<RankLedger>& ledgers) {
  std::int64_t first = INT64_MAX, last = 0;
  for (const RankLedger& ledger : ledgers)
    if (!ledger.records.empty()) {
      first = std::min(first, ledger.records.back().step);
      last = std::max(last, ledger.records.back().step);
    }
  if (first >= last) return;
  for (const RankLedger& ledger : ledgers)
    if (!ledger.records.empty() && ledger.records.back().step == first)
      report.end.account.push_back("rank " + std::to_string(ledger.info.world_rank) + " ended step " +
                                   std::to_string(first) + " last; others got to step " + std::to_string(last));
}

void add_incidents(RunReport& report, const Window& window, RunMachine& machine) {
  IncidentFacts& facts = machine.facts;
  facts.verdicts = report.diagnosis.verdicts;
  facts.devices = machine.devices;
  facts.moving = report.end.state != RunEnd::State::kHung;
  std::vector<double> first, last;
  const std::size_t n = window.steps(), part = std::max<std::size_t>(1, n / 5);
  for (std::size_t s = 0; s < n; ++s) {
    if (s < part) first.push_back(ms(window.ranks[0][s].wall_ns));
    if (s + part >= n) last.push_back(ms(window.ranks[0][s].wall_ns));
  }
  facts.step_ms_first = median(first);
  facts.step_ms_last = median(last);
  double step = 0, transfers = 0, exposed = 0, in_flight = 0, buckets = 0;
  for (const auto& rows : window.ranks)
    for (const StepRecord& row : rows) {
      step += ms(row.wall_ns);
      transfers += transfer_ms(row);
      exposed += ms(row.at(TimeClass::kDpTransfer));
      in_flight += ms(row.at(CommAxis::kDp).in_flight_ns);
      buckets = std::max(buckets, static_cast<double>(row.at(CommAxis::kDp).calls));
    }
  facts.comm_share = step > 0 ? transfers / step : 0;
  if (in_flight > 0) facts.dp_exposed_share = std::min(1.0, exposed / in_flight);
  facts.gradient_buckets = static_cast<int>(buckets);
  for (const IncidentMatch& match : matching_incidents(facts))
    report.incidents.push_back(match.sentence + " (as in " + match.source + "): " + match.action);
}

void judge_steps(RunReport& report, const RunRows& rows, const RunMachine& machine) {
  const Window& window = rows.window;
  report.judged = rows.complete && window.steps() > 0;
  if (!report.judged) return;
  if (window.size() == 1)
    report.limits.push_back("one rank only: there is nobody to compare it with; classes and waterfall still hold");
  report.diagnosis = judge_run(window, report.facts, kJudgedSteps, machine.devices);
  double tokens = 0;
  for (const StepRecord& row : window.ranks[0]) tokens += static_cast<double>(row.tokens);
  const double flops = tokens / static_cast<double>(window.steps()) * report.info.flops_per_token;
  const auto peak = report.info.peak_flops > 0 ? std::optional(report.info.peak_flops) : std::nullopt;
  report.waterfall = waterfall(window, flops, peak);
  report.changes = changes_to_try(report.waterfall, report.diagnosis, window, report.facts);
  const Lateness late(window);
  add_lateness(report, late, window);
  for (std::size_t r = 0; r < report.ranks.size(); ++r) {
    double load = 0;
    for (std::size_t s = 0; s < late.steps(); ++s) load += late.load(static_cast<int>(r), s);
    report.ranks[r].load = load / static_cast<double>(late.steps());
  }
}

}  // namespace

RunReport make_report(const ReportRequest& request) {
  const std::filesystem::path folder = request.run;
  const RunRows rows = read_rows(request);
  RunReport report;
  report.run = request.run;
  report.info = rows.ledgers[0].info;
  report.limits = rows.limits;
  report.steps = rows.window.steps();
  report.facts = read_facts(folder);
  report.facts.threads_per_rank = report.info.threads;
  for (std::size_t r = 0; r < rows.ledgers.size(); ++r)
    report.ranks.push_back(summary_of(rows.ledgers[r], rows.window.ranks[r]));
  report.end = run_end(folder, report.ranks[0].step_ms, idle_seconds(rows.ledgers));
  if (report.end.broken()) add_last_steps(report, rows.ledgers);
  RunMachine machine = read_machine(folder, report.info.world_size);
  report.device_remarks = machine.device_remarks;
  report.link_remarks = machine.link_remarks;
  report.pairs = machine.pairs;
  report.curve = read_curve(folder, kCurvePoints);
  if (report.steps == 0) return report;
  report.first_step = rows.window.ranks[0].front().step;
  report.last_step = rows.window.ranks[0].back().step;
  add_speed(report, rows.window);
  add_waiting(report, rows.window);
  if (rows.complete) add_links(report, rows.window);
  judge_steps(report, rows, machine);
  if (report.judged) add_incidents(report, rows.window, machine);
  const std::vector<std::int64_t> candidates = steps_with_events(rows, folder);
  for (std::size_t i = 0; i < std::min<std::size_t>(candidates.size(), 5) && report.worst.events.empty(); ++i)
    report.worst = read_timeline(rows, folder, candidates[i]);
  return report;
}

std::vector<const RankSummary*> notable_ranks(const RunReport& report, std::size_t most) {
  std::vector<const RankSummary*> ranks;
  for (const RankSummary& rank : report.ranks) ranks.push_back(&rank);
  if (ranks.size() <= most) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankSummary* a, const RankSummary* b) {
    return std::max(a->caused_ms, a->waits_ms) > std::max(b->caused_ms, b->waits_ms);
  });
  ranks.resize(most);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

std::string RunReport::first_line() const {
  if (end.broken()) return end.cause;
  if (steps == 0) return "no step has ended on all ranks yet";
  if (!judged) return "rows of some ranks are missing, so ranks cannot be compared";
  if (ranks.size() == 1)
    return "one rank: a step takes " + in_ms(ranks[0].step_ms) +
           (facts.mfu ? " at " + in_percent(*facts.mfu) + " MFU" : "") + "; the waterfall shows where it goes";
  return drivetrain::first_line(diagnosis);
}

}  // namespace drivetrain
