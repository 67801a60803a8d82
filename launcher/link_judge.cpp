#include "launcher/link_judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "runtime/comm/bench_math.h"

namespace drivetrain {
namespace {

constexpr double kWorse = 1.5;
constexpr std::size_t kFewestLinks = 3;
// 1.4826 makes the median deviation of normal samples their standard deviation; three of them.
constexpr double kDeviations = 3 * 1.4826;

// What is judged: two ends (hosts between hosts, ranks within one) and the median of the figures between them.
struct Unit {
  int a = 0, b = 0;
  std::vector<LinkFigure> links;
  double latency_s = 0, bytes_per_s = 0;
  bool touches(int end) const { return a == end || b == end; }
};

std::string number(double value, const char* unit) {
  char text[48];
  std::snprintf(text, sizeof text, value < 10 ? "%.2f %s" : value < 100 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

std::string speed_text(double bytes_per_s) {
  return bytes_per_s < 1e9 ? number(bytes_per_s / 1e6, "MB/s") : number(bytes_per_s / 1e9, "GB/s");
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? number(seconds * 1e6, "us") : number(seconds * 1e3, "ms");
}

template <class F>
double median_of(const std::vector<Unit>& units, const F& value) {
  std::vector<double> values;
  for (const Unit& unit : units) values.push_back(value(unit));
  return spread_of(values).median;
}

double slowness(const Unit& unit) {
  return 1 / unit.bytes_per_s;
}
double latency(const Unit& unit) {
  return unit.latency_s;
}

class Judge {
 public:
  Judge(const std::string& kind, bool between_hosts, const std::vector<RankSite>& sites)
      : kind_(kind), between_hosts_(between_hosts), sites_(sites) {}

  void add(const LinkFigure& link) {
    const int a = end_of(link.a), b = end_of(link.b);
    const auto ends = std::minmax(a, b);
    const auto at = std::find_if(units_.begin(), units_.end(),
                                 [&](const Unit& unit) { return unit.a == ends.first && unit.b == ends.second; });
    Unit& unit = at == units_.end() ? units_.emplace_back(Unit{ends.first, ends.second, {}}) : *at;
    unit.links.push_back(link);
  }

  std::vector<std::string> sentences() {
    for (Unit& unit : units_) {
      std::vector<double> times, speeds;
      for (const LinkFigure& link : unit.links) {
        times.push_back(link.latency_s);
        speeds.push_back(link.bytes_per_s);
      }
      unit.latency_s = spread_of(times).median;
      unit.bytes_per_s = spread_of(speeds).median;
    }
    std::vector<std::string> said;
    if (units_.size() < kFewestLinks) {
      said.push_back("Too few links of kind " + kind_ + " (" + std::to_string(units_.size()) +
                     ") to judge one by the others; that takes " + std::to_string(kFewestLinks) + ".");
      return said;
    }
    for (std::string end = slow_end(); !end.empty(); end = slow_end()) said.push_back(end);
    for (const std::string& link : slow_links()) said.push_back(link);
    if (said.empty())
      said.push_back("No " + kind_ + " link stands out among " + std::to_string(units_.size()) + ": median " +
                     speed_text(1 / median_of(units_, slowness)) + ", " + time_text(median_of(units_, latency)) +
                     ".");
    return said;
  }

 private:
  int end_of(int rank) const { return between_hosts_ ? sites_[static_cast<std::size_t>(rank)].host_index : rank; }

  std::string name_of(int end) const {
    for (std::size_t r = 0; r < sites_.size(); ++r)
      if (end_of(static_cast<int>(r)) == end)
        return between_hosts_ ? sites_[r].host : "rank " + std::to_string(end) + " on " + sites_[r].host;
    return "";
  }

  // "ranks 0 and 2 (node1 and node2, eth0)", "ranks 0-2, 0-3, ... (node1 and node2, eth0)".
  std::string name_of(const Unit& unit) const {
    std::string ranks;
    constexpr std::size_t kListed = 4;
    for (std::size_t i = 0; i < std::min(unit.links.size(), kListed); ++i)
      ranks += (i == 0 ? "" : ", ") + std::to_string(unit.links[i].a) + "-" + std::to_string(unit.links[i].b);
    if (unit.links.size() > kListed) ranks += ", ...";
    const LinkFigure& first = unit.links.front();
    if (unit.links.size() == 1) ranks = std::to_string(first.a) + " and " + std::to_string(first.b);
    const std::string from = sites_[static_cast<std::size_t>(first.a)].host;
    const std::string to = sites_[static_cast<std::size_t>(first.b)].host;
    return "ranks " + ranks + " (" + (from == to ? from : from + " and " + to) + ", " + kind_ + ")";
  }

  // Names the end whose best link is clearly worse than the others' median, and takes its links out; "" if none.
  std::string slow_end() {
    double worst = 1;
    int slow = -1;
    for (const Unit& candidate : units_) {
      for (const int end : {candidate.a, candidate.b}) {
        const auto [touching, others] = parted(end);
        if (touching.size() < 2 || others.empty()) continue;
        const Unit& best = *std::min_element(touching.begin(), touching.end(),
                                             [](const Unit& a, const Unit& b) { return slowness(a) < slowness(b); });
        const double worse = worse_than_usual(best, others, slowness);
        if (worse <= worst) continue;
        worst = worse;
        slow = end;
      }
    }
    if (slow < 0) return "";
    auto [touching, others] = parted(slow);
    const std::string text = "Slow: every " + kind_ + " link of " + name_of(slow) + ", median " +
                             speed_text(1 / median_of(touching, slowness)) + ", while the others reach " +
                             speed_text(1 / median_of(others, slowness)) + ".";
    units_ = std::move(others);
    return text;
  }

  std::pair<std::vector<Unit>, std::vector<Unit>> parted(int end) const {
    std::vector<Unit> touching, others;
    for (const Unit& unit : units_) (unit.touches(end) ? touching : others).push_back(unit);
    return {touching, others};
  }

  struct Finding {
    double worse = 0;
    std::string text;
  };

  std::vector<std::string> slow_links() const {
    if (units_.size() < kFewestLinks) return {};
    std::vector<Finding> findings;
    for (const Unit& unit : units_) {
      const double bandwidth = worse_than_usual(unit, units_, slowness),
                   time = worse_than_usual(unit, units_, latency);
      if (bandwidth <= 1 && time <= 1) continue;
      std::string text = "Slow: the link between " + name_of(unit) + ": ";
      if (bandwidth > 1)
        text += speed_text(unit.bytes_per_s) + ", " + number(bandwidth, "times") + " less than the median";
      if (time > 1)
        text += (bandwidth > 1 ? "; " : "") + time_text(unit.latency_s) + ", " + number(time, "times") +
                " the median latency";
      findings.push_back({std::max(bandwidth, time), text + " of its kind."});
    }
    std::sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) { return a.worse > b.worse; });
    std::vector<std::string> said;
    for (const Finding& finding : findings) said.push_back(finding.text);
    return said;
  }

  // How many times the unit is worse than the median of `usual`; 1 unless it stands out from their spread.
  template <class F>
  static double worse_than_usual(const Unit& unit, const std::vector<Unit>& usual, const F& badness) {
    std::vector<double> logs;
    for (const Unit& one : usual) logs.push_back(std::log(badness(one)));
    const double excess = std::log(badness(unit)) - spread_of(logs).median;
    const bool out = excess > std::log(kWorse) && excess > kDeviations * median_deviation(logs);
    return out ? std::exp(excess) : 1;
  }

  std::string kind_;
  bool between_hosts_;
  const std::vector<RankSite>& sites_;
  std::vector<Unit> units_;
};

}  // namespace

std::string link_kind(const RankSite& a, const RankSite& b, const std::string& transport) {
  const bool one_host = a.host_index == b.host_index;
  if (one_host) return transport == "hierarchical" ? "shm" : transport;
  if (a.interface.empty() || b.interface.empty()) return "mpi";
  return a.interface == b.interface ? a.interface : a.interface + "-" + b.interface;
}

std::vector<std::string> judge_links(const std::vector<LinkFigure>& links, const std::vector<RankSite>& sites) {
  std::map<std::pair<bool, std::string>, Judge> judges;  // within hosts first
  for (const LinkFigure& link : links) {
    const bool between =
        sites[static_cast<std::size_t>(link.a)].host_index != sites[static_cast<std::size_t>(link.b)].host_index;
    judges.try_emplace({between, link.kind}, link.kind, between, sites).first->second.add(link);
  }
  std::vector<std::string> said;
  for (auto& [key, judge] : judges) {
    const std::vector<std::string> more = judge.sentences();
    said.insert(said.end(), more.begin(), more.end());
  }
  return said;
}

}  // namespace drivetrain
