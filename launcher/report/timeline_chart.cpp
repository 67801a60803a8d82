// One step of all ranks on one clock: what each did, and in which collective it waited.
#include <algorithm>

#include "launcher/report/charts.h"
#include "launcher/report/svg.h"
#include "runtime/comm/call_record.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

using enum Svg::Anchor;

constexpr double kLeft = 110, kLane = 16, kPitch = 46;

// Draws spans on one lane, one after the other. What is less than a third of a pixel behind another of its kind is not
// drawn again: thousands of collectives stay a few hundred marks.
class Lane {
 public:
  Lane(Svg& svg, double y, double scale) : svg_(svg), y_(y), scale_(scale) {}
  void draw(double begin_ms, double end_ms, const std::string& css, const std::string& tip) {
    const double x = kLeft + begin_ms * scale_, end = std::max(kLeft + end_ms * scale_, x + 0.3);
    if (css == css_ && end < drawn_to_ + 0.3) return;
    svg_.rect(x, y_, end - x, kLane, css, tip);
    css_ = css;
    drawn_to_ = end;
  }

 private:
  Svg& svg_;
  double y_, scale_;
  std::string css_;
  double drawn_to_ = -1;
};

void draw_rank(Svg& svg, std::vector<LedgerEvent> events, const Timeline& timeline, double y, double scale) {
  // Outer spans first, so that inner ones lie on top.
  std::stable_sort(events.begin(), events.end(), [](const LedgerEvent& a, const LedgerEvent& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  Lane phases(svg, y, scale), collectives(svg, y + kLane + 2, scale);
  const auto since = [&](std::int64_t ns) { return static_cast<double>(ns - timeline.begin_ns) * kMsPerNs; };
  for (const LedgerEvent& e : events) {
    const double begin = since(e.begin_ns), end = since(e.end_ns);
    if (e.kind == LedgerEvent::Kind::kPhase) {
      const std::string phase = name(static_cast<Phase>(e.what));
      phases.draw(begin, end, "c-" + phase, phase + ": " + in_ms(end - begin));
      continue;
    }
    const std::string axis = name(static_cast<CommAxis>(e.axis));
    const std::string what = axis + " " + name(static_cast<CollectiveOp>(e.what)) + " #" +
                             std::to_string(e.sequence) + ", " + fixed(static_cast<double>(e.bytes) * 1e-6, 3) +
                             " MB";
    const double last = e.last_arrival_ns > 0 ? std::clamp(since(e.last_arrival_ns), begin, end) : begin;
    if (last > begin)
      collectives.draw(begin, last, "c-" + axis + "_wait",
                       what + ": waits " + in_ms(last - begin) +
                           (e.last_rank >= 0 ? " for rank " + std::to_string(e.last_rank) : ""));
    collectives.draw(last, end, "c-" + axis + "_transfer", what + ": transfers " + in_ms(end - last));
  }
}

}  // namespace

std::string step_timeline(const RunReport& report) {
  const Timeline& timeline = report.worst;
  if (timeline.events.empty()) return "";
  const auto ranks = notable_ranks(report, kMostLanes);
  std::int64_t end_ns = timeline.begin_ns + 1;
  for (const auto& events : timeline.events)
    for (const LedgerEvent& e : events) end_ns = std::max(end_ns, e.end_ns);
  const double total = static_cast<double>(end_ns - timeline.begin_ns) * kMsPerNs;
  const double width = kChartWidth - kLeft - 10, scale = width / total;
  const double height = kPitch * static_cast<double>(ranks.size());
  Svg svg(kChartWidth, height + 24,
          "phases and collectives of step " + std::to_string(timeline.step) + " on all ranks");
  for (int i = 0; i <= 4; ++i) {
    const double x = kLeft + width * i / 4;
    svg.line(x, 0, x, height, "rule");
    svg.text(x, height + 16, in_ms(total * i / 4), "small", i == 0 ? kStart : i == 4 ? kEnd : kMiddle);
  }
  double y = 4;
  for (const RankSummary* rank : ranks) {
    svg.text(kLeft - 10, y + 12, "rank " + std::to_string(rank->rank), "label", kEnd);
    svg.text(kLeft - 10, y + 30, "collectives", "small", kEnd);
    draw_rank(svg, timeline.events[static_cast<std::size_t>(rank - report.ranks.data())], timeline, y, scale);
    y += kPitch;
  }
  return svg.done();
}

}  // namespace drivetrain
