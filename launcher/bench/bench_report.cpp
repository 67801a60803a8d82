#include "launcher/bench/bench_report.h"

#include <algorithm>

#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/straggler.h"
#include "runtime/mfu.h"

namespace drivetrain {
namespace {

// Ranks that do their own work in times closer than this count as equal; as the straggler verdicts do.
constexpr double kRanksDiffer = 0.03;

Window window_of(const std::vector<RankLedger>& ledgers) {
  Window window;
  if (!ledgers.empty()) {
    window.dp = ledgers.front().info.dp;
    window.tp = ledgers.front().info.tp;
  }
  for (const RankLedger& ledger : ledgers) {
    window.ranks.emplace_back(ledger.records);
    window.hosts.push_back(ledger.info.host);
  }
  check(window);
  return window;
}

StepSpread spread_of(const std::vector<double>& values, double mean_value) {
  return {median(values), quantile(values, 0.1), quantile(values, 0.9), mean_value};
}

void time_steps(const Window& window, StepBenchReport& report) {
  std::vector<double> step_ms, rates;
  double tokens = 0, total_ms = 0;
  for (std::size_t s = 0; s < window.steps(); ++s) {
    double ms = 0;
    for (const auto& rows : window.ranks) ms += static_cast<double>(rows[s].wall_ns) * kMsPerNs / window.size();
    const auto own = static_cast<double>(window.ranks.front()[s].tokens);
    step_ms.push_back(ms);
    rates.push_back(own / (ms * 1e-3));
    tokens += own;
    total_ms += ms;
  }
  const auto steps = static_cast<double>(window.steps());
  report.steps = window.steps();
  report.tokens_per_step = static_cast<std::int64_t>(tokens / steps + 0.5);
  report.step_ms = spread_of(step_ms, total_ms / steps);
  report.tokens_per_s = spread_of(rates, tokens / (total_ms * 1e-3));
}

std::vector<StepBenchReport::Rank> ranks_of(const Window& window, const std::vector<RankLedger>& ledgers) {
  std::vector<StepBenchReport::Rank> ranks;
  for (int r = 0; r < window.size(); ++r) {
    const auto& rows = window.ranks[static_cast<std::size_t>(r)];
    const LedgerInfo& info = ledgers[static_cast<std::size_t>(r)].info;
    StepBenchReport::Rank rank{.rank = r, .host = info.host, .peak_flops = info.peak_flops};
    const auto steps = static_cast<double>(rows.size());
    for (const StepRecord& row : rows) {
      rank.own_ms += local_ms(row) / steps;
      rank.waits_ms += wait_ms(row) / steps;
      rank.transfer_ms += transfer_ms(row) / steps;
    }
    ranks.push_back(rank);
  }
  return ranks;
}

bool differ(const std::vector<StepBenchReport::Rank>& ranks, double step_ms) {
  const auto less = [](const auto& a, const auto& b) { return a.own_ms < b.own_ms; };
  const auto [least, most] = std::minmax_element(ranks.begin(), ranks.end(), less);
  return most->own_ms - least->own_ms > kRanksDiffer * step_ms;
}

}  // namespace

StepBenchReport report_of(const StepBench& bench) {
  const Window window = window_of(bench.ledgers);
  StepBenchReport report;
  time_steps(window, report);

  double peak = 0;
  bool all_known = true;
  for (const RankLedger& ledger : bench.ledgers) {
    peak += ledger.info.peak_flops;
    all_known &= ledger.info.peak_flops > 0;
  }
  if (all_known) report.peak_flops = peak;
  const auto row = [&](FlopsConvention convention, double flops) {
    return StepBenchReport::Convention{
        convention, flops, model_flops_utilization(flops, report.tokens_per_s.mean, 1, report.peak_flops)};
  };
  const auto counted = [&](FlopsConvention c) { return row(c, flops_per_token(bench.shape, c)); };
  for (const FlopsConvention c : flops_conventions()) report.conventions.push_back(counted(c));
  report.chosen = counted(bench.convention);
  report.causal = counted(FlopsConvention::kCausal);
  report.full = counted(FlopsConvention::kFullAttention);
  report.hardware = row(FlopsConvention::kCausal, hardware_flops_per_token(bench.shape, bench.recompute));

  std::optional<double> rank_peak;
  if (report.peak_flops) rank_peak = *report.peak_flops / window.size();
  report.waterfall =
      waterfall(window, report.chosen.flops_per_token * static_cast<double>(report.tokens_per_step), rank_peak);
  if (rank_peak && bench.copy_bytes_per_s > 0)
    report.operators = roofline(window, *rank_peak, bench.copy_bytes_per_s);
  RunFacts facts = bench.facts;
  facts.mfu = report.chosen.mfu;
  report.diagnosis = judge(window, facts);
  report.changes = changes_to_try(report.waterfall, report.diagnosis, window, facts);
  report.ranks = ranks_of(window, bench.ledgers);
  report.ranks_differ = differ(report.ranks, report.step_ms.mean);
  if (bench.feed_windows)
    report.feed =
        FeedVerdict{*bench.feed_windows * static_cast<double>(report.tokens_per_step), report.tokens_per_s.median};
  return report;
}

}  // namespace drivetrain
