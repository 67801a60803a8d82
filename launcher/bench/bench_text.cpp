#include "launcher/bench/bench_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "launcher/bench/bench_options.h"
#include "launcher/report/wrap.h"
#include "launcher/version.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

constexpr std::size_t kMostRanks = 16;

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  std::array<char, 512> line{};
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(line.data(), line.size(), pattern, values);
  va_end(values);
  return line.data();
}

std::string percent(const std::optional<double>& share) {
  return share ? fixed(100 * *share, 2) + " %" : "-";
}

std::string header(const StepBench& bench, const StepBenchReport& report) {
  const LedgerInfo& first = bench.ledgers.front().info;
  std::vector<std::string> hosts;
  for (const auto& rank : report.ranks)
    if (std::find(hosts.begin(), hosts.end(), rank.host) == hosts.end()) hosts.push_back(rank.host);
  const std::size_t ranks = report.ranks.size();
  std::string text =
      wrapped("# ", std::string("drivetrain ") + version() + " bench " + bench.config + ": " + std::to_string(ranks) +
                        (ranks == 1 ? " rank, " : " ranks, ") + std::to_string(hosts.size()) +
                        (hosts.size() == 1 ? " host" : " hosts") + ", load " + fixed(bench.load_before, 1) +
                        " before, " + fixed(bench.load_after, 1) + " after");
  text += wrapped("# model   ", bench.model);
  text += wrapped("# layout  ", "dp " + std::to_string(first.dp) + " x tp " + std::to_string(first.tp) + ", " +
                                    first.compute + ", " + bench.transport + " collectives, " + first.device);
  text += wrapped("# data    ", bench.data);
  text += wrapped("# steps   ", std::to_string(bench.warmup) + " to warm up, " + std::to_string(report.steps) +
                                    " timed, of " + std::to_string(report.tokens_per_step) + " tokens");
  return text;
}

std::string spread_line(const char* label, const StepSpread& s, int digits) {
  return format("%-9s %12s median, %s to %s (10th to 90th percentile), mean %s\n", label,
                fixed(s.median, digits).c_str(), fixed(s.p10, digits).c_str(), fixed(s.p90, digits).c_str(),
                fixed(s.mean, digits).c_str());
}

bool too_fast(const std::vector<RooflineRow>& operators) {
  constexpr double kNoise = 1.05;
  return std::any_of(operators.begin(), operators.end(),
                     [](const RooflineRow& row) { return row.compute_bound && row.share_of_bound > kNoise; });
}

std::string mfu_lines(const StepBench& bench, const StepBenchReport& report) {
  const std::string counted = "counted as " + convention_name(report.chosen.convention) + ": " +
                              in_si(report.chosen.flops_per_token, "FLOP") + " a token";
  if (!report.peak_flops)
    return wrapped("MFU                  ",
                   "none: no peak (" + bench.peak_source + "); give --peak-tflops, of one device. " + counted);
  const auto ranks = static_cast<double>(report.ranks.size());
  std::string text = format("MFU       %12s %s\n", percent(report.chosen.mfu).c_str(), counted.c_str());
  text += format("          %12s causal attention, %s full attention, %s HFU (with recomputation)\n",
                 percent(report.causal.mfu).c_str(), percent(report.full.mfu).c_str(),
                 percent(report.hardware.mfu).c_str());
  text += wrapped("peak                 ", std::to_string(report.ranks.size()) + " x " +
                                               in_si(*report.peak_flops / ranks, "FLOP/s") + " (" +
                                               bench.peak_source + ")");
  if (report.full.mfu > 1 || too_fast(report.operators))
    text += wrapped("                     ",
                    "too low: products ran faster than it; give the data sheet's with --peak-tflops");
  return text;
}

std::string waterfall_lines(const StepBenchReport& report) {
  const Waterfall& w = report.waterfall;
  const bool peak = w.ideal_us > 0;
  const auto line = [](const std::string& label, std::int64_t us, std::int64_t milli) {
    const auto bar = static_cast<std::size_t>(std::clamp(static_cast<double>(milli) * 4e-4, 0.0, 40.0) + 0.5);
    std::string text = format("  %-28s %12.3f %12.3f  ", label.c_str(), static_cast<double>(us) * 1e-3,
                              static_cast<double>(milli) * 1e-3) +
                       std::string(bar, '#');
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = format("\n%-30s %12s %12s\n", peak ? "from peak to achieved" : "where the step goes", "ms",
                            peak ? "points" : "% of step");
  std::int64_t us = w.ideal_us, milli = w.achieved_milli_points;
  for (const WaterfallRow& row : w.rows) {
    us += row.us;
    milli += row.milli_points;
  }
  if (peak) text += line("peak, the whole step", us, milli);
  for (const WaterfallRow& row : w.rows)
    if (row.us != 0 || row.milli_points != 0)
      text += line((peak ? "- " : "") + row.label(), row.us, row.milli_points);
  return text +
         (peak ? line("= achieved, MFU", w.ideal_us, w.achieved_milli_points) : line("= the whole step", us, milli));
}

std::string operator_lines(const StepBench& bench, const StepBenchReport& report) {
  if (report.operators.empty()) return "";
  std::string text = format("\n%-16s %9s %10s %10s %10s  %s\n", "operators", "ms", "FLOP/byte", "GFLOP/s", "GB/s",
                            "bound by, share of that reached");
  for (const RooflineRow& row : report.operators)
    text += format("  %-14s %9.3f %10.2f %10.2f %10.3f  %s %s\n", name(row.op), row.ms, row.flops_per_byte,
                   row.flops_per_s * 1e-9, row.bytes_per_s * 1e-9, row.compute_bound ? "compute," : "memory, ",
                   in_percent(row.share_of_bound).c_str());
  return text + "  least memory traffic; a copy moves " + in_si(bench.copy_bytes_per_s, "B/s") +
         " a rank; memory above 100 %: out of caches\n";
}

std::string rank_lines(const StepBenchReport& report) {
  if (!report.ranks_differ) return "";
  std::vector<StepBenchReport::Rank> shown = report.ranks;
  if (shown.size() > kMostRanks) {
    std::sort(shown.begin(), shown.end(), [](const auto& a, const auto& b) { return a.own_ms > b.own_ms; });
    shown.resize(kMostRanks);
  }
  std::string text = format("\n%-8s %12s %12s %12s  %s\n", "rank", "own work ms", "waits ms", "transfers ms", "host");
  for (const auto& rank : shown)
    text += format("  %-6d %12.3f %12.3f %12.3f  %.40s\n", rank.rank, rank.own_ms, rank.waits_ms, rank.transfer_ms,
                   rank.host.c_str());
  if (shown.size() < report.ranks.size())
    text += "  the slowest of " + std::to_string(report.ranks.size()) + " ranks\n";
  return text;
}

// Details and advice are for `diagnose` and for the changes below.
std::string in_one_line(const Verdict& v) {
  const std::string cost = ", costs " + in_ms(v.cost_ms) + " a step";
  if (v.rank < 0) return "pauses of about " + in_ms(v.late_ms) + " on changing ranks" + cost;
  return "rank " + std::to_string(v.rank) + " " + plain_words(v.cause) + " " + in_ms(v.own_ms) + " a step (others " +
         in_ms(v.peers_ms) + ")" + cost;
}

std::string verdict_lines(const StepBenchReport& report) {
  const Diagnosis& d = report.diagnosis;
  if (report.ranks.size() < 2) return "";
  if (d.too_short) return "\n" + wrapped("straggler ", "too few steps for a verdict; --steps 20 is enough");
  if (!d.verdicts.empty()) return "\n" + wrapped("straggler ", in_one_line(d.verdicts.front()));
  return "\n" + wrapped("straggler ", "none: a rank later by " + in_ms(d.detectable_ms) + " (" +
                                          in_percent(d.detectable_ms / d.step_ms) + " of the step) would have shown");
}

std::string change_lines(const StepBenchReport& report) {
  if (report.changes.empty()) return "\nworth trying: nothing that would give back 1 % of the step\n";
  std::string text = "\nworth trying, with what it gives back at most\n";
  for (std::size_t i = 0; i < report.changes.size(); ++i) {
    const Change& change = report.changes[i];
    std::string gain = in_ms(change.gain_ms);
    if (change.mfu_points) gain += ", " + fixed(*change.mfu_points, 1) + " points of MFU";
    text += wrapped("  " + std::to_string(i + 1) + ". ", change.what + " (" + change.why + "): " + gain);
  }
  return text;
}

}  // namespace

std::string in_si(double value, const std::string& unit) {
  constexpr std::array kPrefixes{"", "k", "M", "G", "T", "P", "E"};
  std::size_t power = 0;
  while (std::abs(value) >= 1000 && power + 1 < kPrefixes.size()) {
    value /= 1000;
    ++power;
  }
  return fixed(value, value >= 100 ? 0 : value >= 10 ? 1 : 2) + " " + kPrefixes.at(power) + unit;
}

std::string bench_text(const StepBench& bench, const StepBenchReport& report) {
  std::string text = header(bench, report) + "\n";
  text += spread_line("tokens/s", report.tokens_per_s, 0);
  text += spread_line("step ms", report.step_ms, 3);
  text += mfu_lines(bench, report);
  if (report.feed)
    text += wrapped("feed                 ", "the loader alone gives " + fixed(report.feed->feed, 0) + " tokens/s, " +
                                                 report.feed->sentence());
  text += waterfall_lines(report) + operator_lines(bench, report) + rank_lines(report) + verdict_lines(report) +
          change_lines(report);
  return text;
}

}  // namespace drivetrain
