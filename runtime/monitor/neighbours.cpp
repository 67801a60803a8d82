#include "runtime/monitor/neighbours.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/monitor/proc_text.h"

namespace drivetrain {
namespace {

struct ProcessStat {
  std::string name;
  double parent = 0, ticks = 0, start_time = 0, cpu = 0;
};

// /proc/PID/stat: number, name in brackets, then fields from the third on (proc(5)).
std::optional<ProcessStat> read_stat(const SystemRoot& root, const std::string& pid) {
  const auto text = root.text("proc/" + pid + "/stat");
  if (!text) return std::nullopt;
  const std::size_t open = text->find('('), close = text->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  const auto words = words_of(std::string_view(*text).substr(close + 1));
  const auto field = [&](std::size_t n) { return proc_word(words, n - 3); };
  const Reading parent = field(4), user = field(14), system = field(15), start = field(22), cpu = field(39);
  if (!parent || !user || !system || !start || !cpu) return std::nullopt;
  return ProcessStat{text->substr(open + 1, close - open - 1), *parent, *user + *system, *start, *cpu};
}

constexpr std::size_t kMostNeighbours = 3;
constexpr double kLeastCores = 0.1;

}  // namespace

NeighbourScan::NeighbourScan(const SystemRoot& root)
    : root_(root), ticks_per_s_(static_cast<double>(sysconf(_SC_CLK_TCK))) {}

std::vector<Neighbour> NeighbourScan::scan(double now_s) {
  const auto own = read_stat(root_, "self");
  const double elapsed_s = now_s - last_s_;
  std::vector<Neighbour> busy;
  std::map<Identity, double> seen;
  for (const std::string& entry : root_.entries("proc")) {
    const auto pid = parse_integer(entry);
    const auto stat = pid ? read_stat(root_, entry) : std::nullopt;
    if (!stat || (own && stat->parent == own->parent && stat->name == own->name)) continue;
    const Identity who{static_cast<int>(*pid), stat->start_time};
    seen[who] = stat->ticks;
    const auto before = ticks_.find(who);
    if (before == ticks_.end() || elapsed_s <= 0) continue;
    const double cores = (stat->ticks - before->second) / ticks_per_s_ / elapsed_s;
    if (cores >= kLeastCores) busy.push_back({who.pid, stat->name, cores, static_cast<int>(stat->cpu)});
  }
  ticks_ = std::move(seen);
  last_s_ = now_s;
  std::sort(busy.begin(), busy.end(),
            [](const Neighbour& a, const Neighbour& b) { return a.cpu_cores > b.cpu_cores; });
  if (busy.size() > kMostNeighbours) busy.resize(kMostNeighbours);
  return busy;
}

}  // namespace drivetrain
