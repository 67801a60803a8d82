#include "launcher/report/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <unordered_map>

#include "kernels/error.h"
#include "launcher/report/run_clocks.h"
#include "launcher/report/step_range.h"
#include "runtime/comm/call_record.h"
#include "runtime/diagnosis/text.h"
#include "runtime/ledger/event_file.h"
#include "runtime/ledger/ledger_file.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kPhaseThread = 0, kThreadsPerAxis = 16;
constexpr std::int64_t kArrowNs = 50000;  // waits worth an arrow

// A collective of one rank, as an arrow finds its ends.
std::uint64_t key_of(int rank, const LedgerEvent& event) {
  return static_cast<std::uint64_t>(rank) << 48 | static_cast<std::uint64_t>(event.axis) << 46 |
         (event.sequence & ((std::uint64_t{1} << 46) - 1));
}

struct RankTrack {
  LedgerInfo info;
  std::vector<LedgerEvent> events;  // on rank 0's clock, by begin; outer phases before inner ones
};

class TraceText {
 public:
  explicit TraceText(std::int64_t origin_ns) : origin_ns_(origin_ns) {}

  void name_threads(const LedgerInfo& info) {
    const int rank = info.world_rank;
    meta("process_name", rank, 0, {{"name", "rank " + std::to_string(rank) + " (" + info.host + ")"}});
    meta("process_sort_index", rank, 0, {{"sort_index", rank}});
    meta("thread_name", rank, kPhaseThread, {{"name", "phases"}});
  }
  void name_axis_thread(int rank, CommAxis axis, int lane) {
    const std::string name = std::string(drivetrain::name(axis)) + " collectives";
    meta("thread_name", rank, thread_of(axis, lane),
         {{"name", lane == 0 ? name : name + " " + std::to_string(lane + 1)}});
  }
  static int thread_of(CommAxis axis, int lane) { return 1 + static_cast<int>(axis) * kThreadsPerAxis + lane; }

  void phase(int rank, const LedgerEvent& e) {
    span(name(static_cast<Phase>(e.what)), "phase", rank, kPhaseThread, e, {{"step", e.step}});
  }
  void collective(int rank, const LedgerEvent& e, int lane) {
    Json args = {{"step", e.step}, {"bytes", e.bytes}, {"sequence", e.sequence}};
    if (e.last_rank >= 0) args["last_rank"] = e.last_rank;
    if (e.last_arrival_ns > 0)
      args["waiting_ms"] = 1e-6 * static_cast<double>(std::max<std::int64_t>(0, e.last_arrival_ns - e.begin_ns));
    span(name(static_cast<CollectiveOp>(e.what)), name(static_cast<CommAxis>(e.axis)), rank,
         thread_of(static_cast<CommAxis>(e.axis), lane), e, std::move(args));
  }
  void arrow(std::size_t id, int from_rank, int from_thread, std::int64_t from_ns, int to_rank, int to_thread,
             std::int64_t to_ns) {
    event({{"name", "comes last"},
           {"cat", "wait"},
           {"ph", "s"},
           {"id", id},
           {"pid", from_rank},
           {"tid", from_thread},
           {"ts", us(from_ns)}});
    event({{"name", "comes last"},
           {"cat", "wait"},
           {"ph", "f"},
           {"bp", "e"},
           {"id", id},
           {"pid", to_rank},
           {"tid", to_thread},
           {"ts", us(to_ns)}});
  }
  std::string done(const Json& other) {
    return "{\"displayTimeUnit\":\"ms\",\"otherData\":" + other.dump() + ",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  double us(std::int64_t ns) const { return static_cast<double>(ns - origin_ns_) * 1e-3; }
  void event(const Json& json) {
    if (!text_.empty()) text_ += ",\n";
    text_ += json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void meta(const char* what, int rank, int thread, Json args) {
    event({{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", thread}, {"args", std::move(args)}});
  }
  void span(const char* what, const char* category, int rank, int thread, const LedgerEvent& e, Json args) {
    event({{"name", what},
           {"cat", category},
           {"ph", "X"},
           {"pid", rank},
           {"tid", thread},
           {"ts", us(e.begin_ns)},
           {"dur", static_cast<double>(e.end_ns - e.begin_ns) * 1e-3},
           {"args", std::move(args)}});
  }

  std::int64_t origin_ns_;
  std::string text_;
};

// Spans of one thread of a trace must nest. Collectives in flight at the same time go to lanes of their own.
class Lanes {
 public:
  int place(const LedgerEvent& e) {
    auto& ends = ends_[e.axis];
    for (std::size_t i = 0; i < ends.size(); ++i)
      if (ends[i] <= e.begin_ns) {
        ends[i] = e.end_ns;
        return static_cast<int>(i);
      }
    if (ends.size() == kThreadsPerAxis) return kThreadsPerAxis - 1;
    ends.push_back(e.end_ns);
    return static_cast<int>(ends.size()) - 1;
  }
  int count(CommAxis axis) const { return static_cast<int>(ends_[static_cast<std::size_t>(axis)].size()); }

 private:
  std::array<std::vector<std::int64_t>, kCommAxes> ends_;
};

std::vector<LedgerEvent> flat(const RankEvents& events) {
  std::vector<LedgerEvent> all;
  for (const StepEvents& step : events.steps) all.insert(all.end(), step.events.begin(), step.events.end());
  return all;
}

// The steps of rank 0 that the request means.
std::pair<std::int64_t, std::int64_t> steps_of(const TraceRequest& request, const RankEvents& events) {
  if (events.steps.empty()) return {0, -1};
  const bool asked = request.first_step > 0 || request.last_step < INT64_MAX;
  const std::size_t n = events.steps.size();
  const std::size_t first = asked || n <= kTraceSteps ? 0 : n - static_cast<std::size_t>(kTraceSteps);
  return {events.steps[first].step, events.steps.back().step};
}

std::vector<RankTrack> read_tracks(const TraceRequest& request, TraceSummary& summary) {
  const fs::path run = request.run, folder = fs::is_directory(run / "ledger") ? run / "ledger" : run;
  if (!fs::exists(events_path(folder, 0)))
    throw Error(ErrorKind::kData, request.run + " holds no events: there is no " + events_path(folder, 0).string() +
                                      "; name the folder of a run, as in runs/quickstart");
  const RankEvents first = read_events(events_path(folder, 0), request.first_step, request.last_step);
  auto [from, to] = steps_of(request, first);
  const int world = first.info.world_size;
  std::vector<RankTrack> tracks;
  std::vector<int> missing;
  for (int r = 0; r < world; ++r) {
    const fs::path file = events_path(folder, r);
    if (!fs::exists(file)) {
      missing.push_back(r);
      continue;
    }
    const RankEvents events = read_events(file, from, to);
    if (events.info.resumed_after >= from && from <= to) {
      // Rows and events before belong to a process with another clock.
      summary.remarks.push_back("steps up to " + std::to_string(events.info.resumed_after) +
                                " are of the process before the last resume, on another clock: left out");
      from = events.info.resumed_after + 1;
      tracks.clear();
      missing.clear();
      r = -1;
      continue;
    }
    tracks.push_back({events.info, flat(events)});
    if (r == 0) summary.steps = events.steps.size();
    for (const StepEvents& step : events.steps)
      if (step.dropped > 0 && summary.remarks.size() < 8)
        summary.remarks.push_back("rank " + std::to_string(r) + ", step " + std::to_string(step.step) + ": " +
                                  std::to_string(step.dropped) + " later events were not kept");
  }
  if (!missing.empty())
    summary.remarks.push_back("no events of " + std::to_string(missing.size()) + " ranks, rank " +
                              std::to_string(missing.front()) + " first; clocks of the others are not aligned");
  if (summary.steps == 0)
    throw Error(ErrorKind::kData, request.run + " has no events of these steps (a long run keeps only every 2^k-th " +
                                      "step); drivetrain ledger shows the steps there are");
  summary.first_step = from;
  summary.last_step = to;
  return tracks;
}

void align(std::vector<RankTrack>& tracks, TraceSummary& summary) {
  std::vector<LedgerInfo> infos;
  std::vector<std::span<const LedgerEvent>> spans;
  for (const RankTrack& track : tracks) {
    infos.push_back(track.info);
    spans.emplace_back(track.events);
  }
  summary.clocks = run_clocks(infos, spans);
  for (std::size_t r = 0; r < tracks.size(); ++r) {
    for (LedgerEvent& e : tracks[r].events) {
      e.begin_ns = summary.clocks[r].to_reference(e.begin_ns);
      e.end_ns = summary.clocks[r].to_reference(e.end_ns);
      if (e.last_arrival_ns > 0) e.last_arrival_ns = summary.clocks[r].to_reference(e.last_arrival_ns);
    }
    std::stable_sort(tracks[r].events.begin(), tracks[r].events.end(),
                     [](const LedgerEvent& a, const LedgerEvent& b) {
                       return std::make_tuple(a.begin_ns, -a.end_ns) < std::make_tuple(b.begin_ns, -b.end_ns);
                     });
  }
}

Json clocks_json(const std::vector<RankTrack>& tracks, const TraceSummary& summary) {
  Json clocks = Json::array();
  for (std::size_t r = 0; r < tracks.size(); ++r)
    clocks.push_back({{"rank", tracks[r].info.world_rank},
                      {"host", tracks[r].info.host},
                      {"offset_us", summary.clocks[r].offset_ns * 1e-3},
                      {"drift_ppm", summary.clocks[r].drift * 1e6},
                      {"error_us", summary.clocks[r].error_ns * 1e-3},
                      {"collectives", summary.clocks[r].samples}});
  return clocks;
}

}  // namespace

double TraceSummary::clock_error_us() const {
  double error = 0;
  for (const ClockMap& clock : clocks) error = std::max(error, clock.error_ns * 1e-3);
  return error;
}

TraceSummary write_trace(const TraceRequest& request) {
  TraceSummary summary;
  std::vector<RankTrack> tracks = read_tracks(request, summary);
  align(tracks, summary);
  std::int64_t origin = INT64_MAX;
  for (const RankTrack& track : tracks)
    if (!track.events.empty()) origin = std::min(origin, track.events.front().begin_ns);
  TraceText text(origin);
  std::unordered_map<std::uint64_t, std::pair<int, std::int64_t>> arrivals;  // thread and begin of a collective
  std::vector<std::tuple<int, int, const LedgerEvent*>> waits;               // rank, thread
  for (const RankTrack& track : tracks) {
    const int rank = track.info.world_rank;
    text.name_threads(track.info);
    Lanes lanes;
    for (const LedgerEvent& e : track.events) {
      ++summary.events;
      if (e.kind == LedgerEvent::Kind::kPhase) {
        text.phase(rank, e);
        continue;
      }
      const int lane = lanes.place(e), thread = TraceText::thread_of(static_cast<CommAxis>(e.axis), lane);
      text.collective(rank, e, lane);
      arrivals[key_of(rank, e)] = {thread, e.begin_ns};
      if (e.last_rank >= 0 && e.last_rank != rank && e.last_arrival_ns - e.begin_ns > kArrowNs)
        waits.emplace_back(rank, thread, &e);
    }
    for (std::size_t a = 0; a < kCommAxes; ++a)
      for (int lane = 0; lane < lanes.count(static_cast<CommAxis>(a)); ++lane)
        text.name_axis_thread(rank, static_cast<CommAxis>(a), lane);
  }
  for (const auto& [rank, thread, e] : waits) {
    const auto last = arrivals.find(key_of(e->last_rank, *e));
    if (last == arrivals.end()) continue;
    const auto& [from_thread, from_ns] = last->second;
    text.arrow(++summary.arrows, e->last_rank, from_thread, from_ns, rank, thread,
               std::clamp(from_ns, e->begin_ns, e->end_ns));
  }
  const Json other = {{"run", request.run},
                      {"first_step", summary.first_step},
                      {"last_step", summary.last_step},
                      {"clock_error_us", summary.clock_error_us()},
                      {"clocks", clocks_json(tracks, summary)}};
  write_whole_file(request.file, text.done(other));
  return summary;
}

}  // namespace drivetrain
