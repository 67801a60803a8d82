#include "runtime/diagnosis/event_replay.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>

#include "kernels/error.h"
#include "runtime/diagnosis/robust_stats.h"

namespace drivetrain {
namespace {

constexpr double kMsPerNs = 1e-6;
constexpr std::size_t kPhaseNumbers = 16, kNoPhase = kPhaseNumbers;
using PhaseTimes = std::array<std::int64_t, kPhaseNumbers + 1>;  // the last: outside all phases

// What a rank does next: local work, then either a collective or the end of a step.
struct Item {
  PhaseTimes local{};
  const LedgerEvent* collective = nullptr;  // null: the step ends
  bool behind_compute = false;
};

bool is_collective(const LedgerEvent& e) {
  // Messages between two ranks have no number and are local work here.
  return e.kind == LedgerEvent::Kind::kCollective && e.sequence > 0;
}

// Length of each innermost phase inside [from, to). `phases` ascend by begin, outer before inner.
PhaseTimes split(const std::vector<const LedgerEvent*>& phases, std::int64_t from, std::int64_t to) {
  PhaseTimes times{};
  times[kNoPhase] = std::max<std::int64_t>(0, to - from);
  std::vector<std::pair<std::int64_t, std::size_t>> open;  // end, phase number
  for (const LedgerEvent* p : phases) {
    if (p->begin_ns >= to) break;
    while (!open.empty() && open.back().first <= p->begin_ns) open.pop_back();
    const std::int64_t inside = std::min(to, p->end_ns) - std::max(from, p->begin_ns);
    const std::size_t number = std::min<std::size_t>(p->what, kPhaseNumbers - 1);
    if (inside > 0) {
      times[number] += inside;
      times[open.empty() ? kNoPhase : open.back().second] -= inside;
    }
    open.emplace_back(p->end_ns, number);
  }
  return times;
}

// One rank's life as a list of items.
std::vector<Item> items_of(std::span<const LedgerEvent> events) {
  std::vector<Item> items;
  std::int64_t at = 0;
  for (std::size_t first = 0, next = 0; first < events.size(); first = next) {
    while (next < events.size() && events[next].step == events[first].step) ++next;
    std::vector<const LedgerEvent*> phases, collectives;
    std::vector<std::int64_t> begins;
    for (std::size_t i = first; i < next; ++i) {
      begins.push_back(events[i].begin_ns);
      if (events[i].kind == LedgerEvent::Kind::kPhase)
        phases.push_back(&events[i]);
      else if (is_collective(events[i]))
        collectives.push_back(&events[i]);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(phases.begin(), phases.end(), [](const LedgerEvent* a, const LedgerEvent* b) {
      return std::tuple(a->begin_ns, -a->end_ns) < std::tuple(b->begin_ns, -b->end_ns);
    });
    std::sort(collectives.begin(), collectives.end(),
              [](const LedgerEvent* a, const LedgerEvent* b) { return a->begin_ns < b->begin_ns; });
    if (first == 0) at = begins.front();
    std::int64_t end = at;  // of what the rank itself did
    for (const LedgerEvent* p : phases) end = std::max(end, p->end_ns);
    for (const LedgerEvent* c : collectives) {
      const auto inside = std::upper_bound(begins.begin(), begins.end(), c->begin_ns);
      const bool behind = inside != begins.end() && *inside < c->end_ns;
      items.push_back({.local = split(phases, at, c->begin_ns), .collective = c, .behind_compute = behind});
      at = std::max(at, behind ? c->begin_ns : c->end_ns);
    }
    end = std::max(end, at);
    items.push_back({.local = split(phases, at, end)});
    at = end;
  }
  return items;
}

int group_number(const JobEvents& job, std::uint8_t axis, int rank) {
  if (axis == static_cast<std::uint8_t>(CommAxis::kTp)) return rank / job.tp;
  if (axis == static_cast<std::uint8_t>(CommAxis::kDp)) return rank % job.tp;
  return 0;
}
std::size_t group_size(const JobEvents& job, std::uint8_t axis) {
  if (axis == static_cast<std::uint8_t>(CommAxis::kTp)) return static_cast<std::size_t>(job.tp);
  if (axis == static_cast<std::uint8_t>(CommAxis::kDp)) return static_cast<std::size_t>(job.dp);
  return static_cast<std::size_t>(job.dp * job.tp);
}

class Replay {
 public:
  Replay(const JobEvents& job, std::span<const LocalChange> changes) : job_(job), ranks_(job.ranks.size()) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].items = items_of(job.ranks[r]);
      ranks_[r].keep.fill(1);
    }
    for (const LocalChange& c : changes)
      ranks_.at(static_cast<std::size_t>(c.rank)).keep[std::min<std::size_t>(c.phase, kPhaseNumbers - 1)] *= c.keep;
  }

  std::vector<double> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        while (advance(static_cast<int>(r))) moved = true;
    }
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      if (rank.next == rank.items.size()) continue;
      const LedgerEvent& stuck = *rank.items[rank.next].collective;
      throw Error(ErrorKind::kData, "events of the ranks do not fit together: rank " + std::to_string(r) +
                                        " waits for ever in collective " + std::to_string(stuck.sequence) +
                                        " of axis " + std::to_string(stuck.axis) + ", step " +
                                        std::to_string(stuck.step));
    }
    return step_times();
  }

 private:
  struct Rank {
    std::vector<Item> items;
    std::array<double, kPhaseNumbers + 1> keep{};
    std::size_t next = 0;
    bool arrived = false;  // at items[next]
    double now = 0;        // ns
    double behind_until = 0;
    std::vector<double> step_ends;
  };
  struct Meeting {
    std::vector<std::pair<std::size_t, const LedgerEvent*>> members;
    double last = 0;
  };

  bool advance(int number) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.next == rank.items.size() || rank.arrived) return false;
    const Item& item = rank.items[rank.next];
    for (std::size_t p = 0; p <= kNoPhase; ++p) rank.now += static_cast<double>(item.local[p]) * rank.keep[p];
    if (!item.collective) {
      rank.now = std::max(rank.now, rank.behind_until);
      rank.step_ends.push_back(rank.now);
      ++rank.next;
      return true;
    }
    const LedgerEvent& c = *item.collective;
    const auto key = std::tuple(c.axis, group_number(job_, c.axis, number), c.sequence);
    Meeting& meeting = meetings_[key];
    meeting.members.emplace_back(static_cast<std::size_t>(number), &c);
    meeting.last = std::max(meeting.last, rank.now);
    rank.arrived = true;
    if (item.behind_compute) pass(rank);
    if (meeting.members.size() == group_size(job_, c.axis)) {
      finish(meeting);
      meetings_.erase(key);
    }
    return !rank.arrived;
  }
  static void pass(Rank& rank) {
    rank.arrived = false;
    ++rank.next;
  }
  // Each member leaves as long after the last arrival as it did.
  void finish(const Meeting& meeting) {
    std::int64_t shortest = INT64_MAX;  // the last one there did not wait
    for (const auto& member : meeting.members)
      shortest = std::min(shortest, member.second->end_ns - member.second->begin_ns);
    for (const auto& [r, c] : meeting.members) {
      Rank& rank = ranks_[r];
      const std::int64_t transfer =
          c->last_arrival_ns > 0 ? c->end_ns - std::max(c->begin_ns, c->last_arrival_ns) : shortest;
      const double end = meeting.last + static_cast<double>(std::max<std::int64_t>(0, transfer));
      const bool waits_here = rank.arrived && rank.items[rank.next].collective == c;
      if (!waits_here) {
        rank.behind_until = std::max(rank.behind_until, end);
        continue;
      }
      rank.now = end;
      pass(rank);
    }
  }
  std::vector<double> step_times() const {
    std::vector<double> ends;
    for (const Rank& rank : ranks_)
      for (std::size_t s = 0; s < rank.step_ends.size(); ++s) {
        if (s == ends.size()) ends.push_back(0);
        ends[s] = std::max(ends[s], rank.step_ends[s]);
      }
    std::vector<double> times;
    for (std::size_t s = 1; s < ends.size(); ++s) times.push_back((ends[s] - ends[s - 1]) * kMsPerNs);
    return times;
  }

  const JobEvents& job_;
  std::vector<Rank> ranks_;
  std::map<std::tuple<std::uint8_t, int, std::uint64_t>, Meeting> meetings_;
};

}  // namespace

std::vector<double> replay_steps(const JobEvents& job, std::span<const LocalChange> changes) {
  if (static_cast<int>(job.ranks.size()) != job.dp * job.tp)
    throw Error(ErrorKind::kData, "events of " + std::to_string(job.ranks.size()) + " ranks do not fill dp " +
                                      std::to_string(job.dp) + " x tp " + std::to_string(job.tp));
  return Replay(job, changes).run();
}

double local_phase_ms(const JobEvents& job, int rank, std::uint8_t phase) {
  std::int64_t sum = 0;
  std::size_t steps = 0;
  for (const Item& item : items_of(job.ranks.at(static_cast<std::size_t>(rank)))) {
    sum += item.local[std::min<std::size_t>(phase, kPhaseNumbers - 1)];
    steps += item.collective ? 0 : 1;
  }
  return steps == 0 ? 0 : static_cast<double>(sum) * kMsPerNs / static_cast<double>(steps);
}

double replayed_gain_ms(const JobEvents& job, int rank, std::uint8_t phase) {
  const double own = local_phase_ms(job, rank, phase);
  std::vector<double> peers;
  for (int r = 0; r < static_cast<int>(job.ranks.size()); ++r)
    if (r != rank) peers.push_back(local_phase_ms(job, r, phase));
  const double usual = median(std::move(peers));
  if (own <= usual) return 0;
  const LocalChange change{rank, phase, usual / own};
  return mean(replay_steps(job)) - mean(replay_steps(job, std::span(&change, 1)));
}

}  // namespace drivetrain
