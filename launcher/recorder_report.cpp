#include "launcher/recorder_report.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace drivetrain {
namespace {

bool is_message(const FlightEntry& entry) {
  return entry.op == CollectiveOp::kSend || entry.op == CollectiveOp::kRecv;
}

std::string group_text(const FlightRank& rank, const FlightEntry& entry) {
  for (const FlightGroup& group : rank.groups)
    if (group.id == entry.group) return group.text.data();
  return "group number " + std::to_string(entry.group);
}

std::string who(const FlightFile& file, const FlightRank& rank) {
  return "rank " + std::to_string(rank.world_rank) + " (host " + file.host + ", pid " + std::to_string(rank.pid) +
         ", " + name(rank.state) + ")";
}

// The collectives of one group, of all ranks that have any, by sequence number.
struct GroupCalls {
  std::string text;
  int size = 0;
  struct Member {
    const FlightFile* file;
    const FlightRank* rank;
    std::map<std::uint64_t, const FlightEntry*> calls;
  };
  std::map<int, Member> members;  // by world rank
};

std::vector<GroupCalls> calls_by_group(const std::vector<FlightFile>& files) {
  // Numbers of groups over MPI hold in the whole job, those of a host's own groups on that host.
  constexpr std::uint32_t kOverMpi = 0x80000000u;
  std::map<std::pair<std::string, std::uint32_t>, GroupCalls> groups;
  for (const FlightFile& file : files)
    for (const FlightRank& rank : file.ranks)
      for (const FlightEntry& entry : rank.entries) {
        if (is_message(entry)) continue;
        GroupCalls& group = groups[{(entry.group & kOverMpi) != 0 ? "" : file.host, entry.group}];
        group.text = group_text(rank, entry);
        for (const FlightGroup& named : rank.groups)
          if (named.id == entry.group) group.size = named.size;
        auto& member = group.members[rank.world_rank];
        member.file = &file;
        member.rank = &rank;
        member.calls[entry.sequence] = &entry;
      }
  std::vector<GroupCalls> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

// The first call that two members made differently; empty when there is none.
std::string difference(const GroupCalls& group) {
  std::map<std::uint64_t, std::pair<const GroupCalls::Member*, const FlightEntry*>> first;
  std::map<std::uint64_t, std::string> found;
  for (const auto& [world_rank, member] : group.members)
    for (const auto& [sequence, entry] : member.calls) {
      const auto [seen, is_new] = first.try_emplace(sequence, &member, entry);
      if (is_new || seen->second.second->call().same_call(entry->call())) continue;
      found.try_emplace(sequence, "the calls differ: #" + std::to_string(sequence) + " in " + group.text + " is " +
                                      seen->second.second->call().describe() + " on " +
                                      who(*seen->second.first->file, *seen->second.first->rank) + ", but " +
                                      entry->call().describe() + " on " + who(*member.file, *member.rank));
    }
  return found.empty() ? "" : found.begin()->second;
}

// Who has not begun the call in which other members of the group wait.
std::vector<std::string> behind(const GroupCalls& group) {
  std::uint64_t furthest = 0;
  for (const auto& [world_rank, member] : group.members) furthest = std::max(furthest, member.calls.rbegin()->first);
  const FlightEntry* waited_in = nullptr;
  for (const auto& [world_rank, member] : group.members) {
    const auto call = member.calls.find(furthest);
    if (call != member.calls.end() && !call->second->finished()) waited_in = call->second;
  }
  std::vector<std::string> lines;
  if (waited_in == nullptr) return lines;
  const std::string where = waited_in->call().describe() + " #" + std::to_string(furthest) + " in " + group.text;
  for (const auto& [world_rank, member] : group.members) {
    const FlightEntry& newest = *member.calls.rbegin()->second;
    if (newest.sequence < furthest)
      lines.push_back("behind: " + who(*member.file, *member.rank) + " has not called " + where +
                      ", in which others wait; its last there is " + newest.call().describe() + " #" +
                      std::to_string(newest.sequence) + (newest.finished() ? ", done" : ", unfinished"));
  }
  const int silent = group.size - static_cast<int>(group.members.size());
  if (silent > 0)
    lines.push_back("missing: " + std::to_string(silent) + " of the " + std::to_string(group.size) + " members of " +
                    group.text + " have no call in these files; others wait in " + where);
  if (lines.empty()) lines.push_back("all members of " + group.text + " are in " + where + ", which is not done");
  return lines;
}

std::string utc(std::int64_t wall_ns) {
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

std::string call_line(const FlightFile& file, const FlightRank& rank, const FlightEntry& e) {
  char when[32], cost[96];
  std::snprintf(when, sizeof when, "%12.6f s  ", static_cast<double>(e.arrival_ns - file.steady_ns) * 1e-9);
  const auto ms = [](std::int64_t from, std::int64_t to) { return static_cast<double>(to - from) * 1e-6; };
  if (!e.finished())
    std::snprintf(cost, sizeof cost, "unfinished for %.3f ms", ms(e.arrival_ns, file.steady_ns));
  else if (e.last_arrival_ns != 0)
    std::snprintf(cost, sizeof cost, "waited %.3f ms, moved %.3f ms, %lld bytes", ms(e.arrival_ns, e.last_arrival_ns),
                  ms(e.last_arrival_ns, e.end_ns), static_cast<long long>(e.bytes));
  else
    std::snprintf(cost, sizeof cost, "took %.3f ms, %lld bytes", ms(e.arrival_ns, e.end_ns),
                  static_cast<long long>(e.bytes));
  return when + e.call().describe() + " #" + std::to_string(e.sequence) + " in " + group_text(rank, e) + "  " +
         name(e.transport) + "  " + cost + "\n";
}

std::size_t skipped(const FlightRank& rank, std::size_t last) {
  return rank.entries.size() - std::min(last, rank.entries.size());
}

nlohmann::json entry_json(const FlightRank& rank, const FlightEntry& e) {
  return {{"number", e.number},
          {"op", name(e.op)},
          {"dtype", name(e.dtype)},
          {"count", e.count},
          {"reduce", name(static_cast<ReduceOp>(e.reduce))},
          {"root", e.root},
          {"group", group_text(rank, e)},
          {"sequence", e.sequence},
          {"transport", name(e.transport)},
          {"arrival_ns", e.arrival_ns},
          {"last_arrival_ns", e.last_arrival_ns},
          {"end_ns", e.end_ns},
          {"bytes", e.bytes}};
}

}  // namespace

std::vector<std::string> recorder_verdict(const std::vector<FlightFile>& files) {
  const auto groups = calls_by_group(files);
  std::vector<std::string> lines;
  for (const FlightFile& file : files)
    for (const FlightRank& rank : file.ranks)
      if (rank.state == RankState::kGone || rank.state == RankState::kStopped)
        lines.push_back(who(file, rank) + " was " + name(rank.state) + " when the file was written");
  std::vector<std::string> late;
  for (const GroupCalls& group : groups) {
    const std::string line = difference(group);
    if (!line.empty())
      lines.push_back(line);
    else
      for (std::string& sentence : behind(group)) late.push_back(std::move(sentence));
  }
  lines.insert(lines.end(), late.begin(), late.end());
  if (lines.empty()) lines.emplace_back("the ranks agree in every call, and no call is unfinished");
  return lines;
}

std::string recorder_text(const std::vector<FlightFile>& files, std::size_t last) {
  std::string text;
  for (const std::string& line : recorder_verdict(files)) text += line + "\n";
  for (const FlightFile& file : files) {
    text += "\nhost " + file.host + ", written " + utc(file.wall_ns) + ": " + file.reason + "\n";
    for (const FlightRank& rank : file.ranks) {
      text += who(file, rank) + ": " + std::to_string(rank.calls) + " calls, the last " +
              std::to_string(rank.entries.size() - skipped(rank, last)) + ":\n";
      for (std::size_t i = skipped(rank, last); i < rank.entries.size(); ++i)
        text += call_line(file, rank, rank.entries[i]);
    }
  }
  return text;
}

std::string recorder_json(const std::vector<FlightFile>& files, std::size_t last) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const FlightFile& file : files) {
    nlohmann::json ranks = nlohmann::json::array();
    for (const FlightRank& rank : file.ranks) {
      nlohmann::json entries = nlohmann::json::array();
      for (std::size_t i = skipped(rank, last); i < rank.entries.size(); ++i)
        entries.push_back(entry_json(rank, rank.entries[i]));
      ranks.push_back({{"rank", rank.world_rank},
                       {"pid", rank.pid},
                       {"state", name(rank.state)},
                       {"calls", rank.calls},
                       {"entries", std::move(entries)}});
    }
    hosts.push_back({{"host", file.host},
                     {"reason", file.reason},
                     {"wall_ns", file.wall_ns},
                     {"steady_ns", file.steady_ns},
                     {"ranks", std::move(ranks)}});
  }
  const nlohmann::json all = {{"verdict", recorder_verdict(files)}, {"hosts", std::move(hosts)}};
  return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace drivetrain
