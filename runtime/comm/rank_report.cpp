#include "runtime/comm/rank_report.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "runtime/comm/host_wait.h"

namespace drivetrain {
namespace {

constexpr std::size_t kShown = 8;

std::string list(const std::vector<const RankReport*>& reports) {
  std::string s;
  for (std::size_t i = 0; i < std::min(reports.size(), kShown); ++i) s += (i ? ", " : "") + reports[i]->describe();
  if (reports.size() > kShown) s += " and " + std::to_string(reports.size() - kShown) + " more";
  return s;
}

}  // namespace

const char* name(RankState state) {
  constexpr std::array kNames = {"running", "stopped", "gone", "state unknown", "left the job", "does not answer"};
  const auto i = static_cast<std::size_t>(state);
  return i < kNames.size() ? kNames[i] : "?";
}

std::string RankReport::describe() const {
  std::string s = "rank " + std::to_string(world_rank) + " (host " + host.data() + ", pid " + std::to_string(pid) +
                  ", " + name(state);
  if (state == RankState::kSilent) return s + ": nobody on its host can be asked)";
  return s + ", last call " + last_call() + ')';
}

std::string RankReport::last_call() const {
  if (newest.number == 0) return "none yet";
  std::string s = newest.call().describe() + " #" + std::to_string(newest.sequence);
  if (group.size > 0) s += std::string(" in ") + group.text.data();
  std::array<char, 48> when{};
  std::snprintf(when.data(), when.size(), ", %s %.1f s ago", newest.finished() ? "done" : "begun",
                static_cast<double>(std::max<std::int64_t>(0, idle_ns)) * 1e-9);
  return s + when.data();
}

bool RankReport::waits() const {
  return (state == RankState::kRunning || state == RankState::kUnknown) && newest.number != 0 && !newest.finished();
}

RankReport report_of(const FlightLog& log) {
  RankReport report;
  const auto newest = newest_flight_entry(log);
  if (!newest) return report;
  report.newest = *newest;
  report.idle_ns = steady_now_ns() - (newest->finished() ? newest->end_ns : newest->arrival_ns);
  for (const FlightGroup& group : flight_groups(log))
    if (group.id == newest->group) report.group = group;
  return report;
}

std::string describe_newest(const FlightLog& log) {
  return report_of(log).last_call();
}

std::string name_absent(std::span<const int> awaited, std::span<const RankReport> reports) {
  const auto is_awaited = [&](const RankReport& r) {
    return std::find(awaited.begin(), awaited.end(), r.world_rank) != awaited.end();
  };
  std::vector<const RankReport*> culprits, waiting;
  for (const RankReport& r : reports) {
    const bool well = r.state == RankState::kRunning || r.state == RankState::kUnknown;
    if (!well || (is_awaited(r) && !r.waits()))
      culprits.push_back(&r);
    else if (is_awaited(r))
      waiting.push_back(&r);
  }
  if (culprits.empty())
    for (const RankReport& r : reports)
      if (!r.waits()) culprits.push_back(&r);
  if (culprits.empty()) std::swap(culprits, waiting);
  return list(culprits) + (waiting.empty() ? "" : "; awaited, but waiting themselves: " + list(waiting));
}

}  // namespace drivetrain
