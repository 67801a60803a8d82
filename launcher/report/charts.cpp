#include "launcher/report/charts.h"

#include <algorithm>
#include <cmath>

#include "launcher/report/svg.h"
#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

using enum Svg::Anchor;

constexpr double kLeft = 110;  // for names

std::string rank_name(int rank) {
  return "rank " + std::to_string(rank);
}

}  // namespace

std::string class_bars(const RunReport& report) {
  const auto ranks = notable_ranks(report, kMostBars);
  double longest = 0;
  for (const RankSummary* rank : ranks) longest = std::max(longest, rank->step_ms);
  if (longest <= 0) return "";
  const double bar = ranks.size() > 12 ? 16 : 26, pitch = bar + 8;
  const double width = kChartWidth - kLeft - 80;
  Svg svg(kChartWidth, pitch * static_cast<double>(ranks.size()) + 8, "where the step of each rank goes, by class");
  double y = 4;
  for (const RankSummary* rank : ranks) {
    svg.text(kLeft - 10, y + bar / 2 + 4, rank_name(rank->rank), "label", kEnd);
    double x = kLeft;
    const auto part = [&](const std::string& what, double ms) {
      const double w = width * ms / longest;
      if (w < 0.05) return;
      svg.rect(x, y, w, bar, "c-" + what,
               rank_name(rank->rank) + ", " + what + ": " + in_ms(ms) + ", " + in_percent(ms / rank->step_ms));
      if (w > 7.0 * static_cast<double>(what.size() + 1) && bar > 20)
        svg.text(x + w / 2, y + bar / 2 + 4, what, "on-bar", kMiddle);
      x += w;
    };
    for (std::size_t c = 0; c < kTimeClasses; ++c) part(name(static_cast<TimeClass>(c)), rank->class_ms[c]);
    part("residual", rank->residual_ms);
    svg.text(x + 8, y + bar / 2 + 4, in_ms(rank->step_ms), "label");
    y += pitch;
  }
  return svg.done();
}

std::string lateness_map(const RunReport& report) {
  const LatenessMap& map = report.lateness;
  const std::size_t ranks = map.columns > 0 ? map.ms.size() / map.columns : 0;
  if (ranks < 2) return "";
  const std::size_t share = (ranks + kMostRows - 1) / kMostRows, rows = (ranks + share - 1) / share;
  // Neighbours in a row: the one furthest from its peers counts.
  std::vector<double> cells;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t c = 0; c < map.columns; ++c) {
      double extreme = 0;
      for (std::size_t r = row * share; r < std::min(ranks, (row + 1) * share); ++r)
        if (std::abs(map.at(r, c)) > std::abs(extreme)) extreme = map.at(r, c);
      cells.push_back(extreme);
    }
  // Full colour at the 95th percentile: one wild step does not bleach the rest; noise of 1 % of the step stays pale.
  std::vector<double> sizes;
  for (const double ms : cells) sizes.push_back(std::abs(ms));
  const double full = std::max({quantile(sizes, 0.95), 0.05 * report.diagnosis.step_ms, 1e-6});
  const double width = kChartWidth - kLeft - 10, cell = width / static_cast<double>(map.columns);
  const double height = rows > 24 ? 10 : rows > 8 ? 16 : 24;
  Svg svg(kChartWidth, height * static_cast<double>(rows) + 46, "lateness of each rank by step");
  for (std::size_t row = 0; row < rows; ++row) {
    const double y = height * static_cast<double>(row);
    if (rows <= 24 || row % 4 == 0)
      svg.text(kLeft - 10, y + height - 4, rank_name(static_cast<int>(row * share)), "label", kEnd);
    svg.rect(kLeft, y, width, height - 1, "map-ground");
    for (std::size_t c = 0; c < map.columns; ++c) {
      const double ms = cells[row * map.columns + c];
      const double shade = std::round(16 * std::min(1.0, std::abs(ms) / full)) / 16;
      if (shade == 0) continue;
      svg.rect(kLeft + cell * static_cast<double>(c), y, cell + 0.1, height - 1, ms > 0 ? "late" : "early",
               rank_name(static_cast<int>(row * share)) + ", from step " + std::to_string(map.first_step[c]) + ": " +
                   in_ms(std::abs(ms)) + (ms > 0 ? " later" : " earlier") + " than its peers",
               shade);
    }
  }
  const double y = height * static_cast<double>(rows) + 14;
  svg.text(kLeft, y, "step " + std::to_string(report.first_step), "small");
  svg.text(kLeft + width, y, "step " + std::to_string(report.last_step), "small", kEnd);
  const double key = kLeft + width / 2 - 150;
  svg.text(key - 8, y + 22, in_ms(full) + " earlier", "small", kEnd);
  for (int i = -8; i <= 8; ++i)
    svg.rect(key + 18.0 * (i + 8), y + 12, 18, 12, i < 0 ? "early" : "late", "", std::abs(i) / 8.0);
  svg.text(key + 18.0 * 17 + 8, y + 22, in_ms(full) + " later than the peers", "small");
  return svg.done();
}

std::string waterfall_chart(const RunReport& report) {
  const Waterfall& w = report.waterfall;
  if (w.step_us <= 0) return "";
  std::vector<const WaterfallRow*> rows;
  for (const WaterfallRow& row : w.rows)
    if (std::abs(row.milli_points) >= 5) rows.push_back(&row);
  constexpr double kNames = 230, kPitch = 26, kBar = 18;
  const double width = kChartWidth - kNames - 190;
  Svg svg(kChartWidth, kPitch * static_cast<double>(rows.size() + 2) + 6, "from peak to achieved, loss by loss");
  const auto x_of = [&](double milli_points) { return kNames + width * milli_points / 1e5; };
  double y = 4, left = 1e5;
  const auto row = [&](const std::string& label, const std::string& css, double from, double to,
                       const std::string& figures) {
    svg.text(kNames - 10, y + 13, label, "label", kEnd);
    svg.line(kNames, y + kPitch - 3, kNames + width, y + kPitch - 3, "rule");
    const double x = x_of(std::min(from, to));
    svg.rect(x, y, std::max(x_of(std::max(from, to)) - x, 1.0), kBar, css, label + ": " + figures);
    svg.text(kNames + width + 12, y + 13, figures, "label");
    y += kPitch;
  };
  const auto figures = [](std::int64_t us, std::int64_t milli_points) {
    return fixed(static_cast<double>(milli_points) * 1e-3, 2) + " pts, " + in_ms(static_cast<double>(us) * 1e-3);
  };
  row(w.ideal_us > 0 ? "peak" : "the step", "w-peak", 0, 1e5, figures(w.step_us, 100000));
  for (const WaterfallRow* one : rows) {
    const double to = left - static_cast<double>(one->milli_points);
    row(one->label(), one->loss == Loss::kWaiting ? "w-waiting" : "w-loss", left, to,
        figures(one->us, one->milli_points));
    left = to;
  }
  if (w.ideal_us > 0)
    row("achieved: MFU", "w-achieved", 0, static_cast<double>(w.achieved_milli_points),
        figures(w.ideal_us, w.achieved_milli_points));
  return svg.done();
}

std::string waiting_matrix(const RunReport& report) {
  const std::size_t n = report.ranks.size();
  const auto shown = notable_ranks(report, kMostLanes);
  double largest = 0;
  for (const double ms : report.waiting_ms) largest = std::max(largest, ms);
  if (n < 2 || largest <= 0) return "";
  const double cell = 46, top = 44;
  const double side = cell * static_cast<double>(shown.size());
  Svg svg(std::max(kLeft + side + 20, 420.0), top + side + 8, "who waits for whom");
  svg.text(kLeft + side / 2, 14, "waits for", "small", kMiddle);
  const auto place = [&](const RankSummary* rank) { return static_cast<std::size_t>(rank - report.ranks.data()); };
  for (std::size_t r = 0; r < shown.size(); ++r) {
    const double y = top + cell * static_cast<double>(r);
    svg.text(kLeft + cell * (static_cast<double>(r) + 0.5), top - 8, std::to_string(shown[r]->rank), "label",
             kMiddle);
    svg.text(kLeft - 10, y + cell / 2 + 4, rank_name(shown[r]->rank), "label", kEnd);
    for (std::size_t c = 0; c < shown.size(); ++c) {
      const double x = kLeft + cell * static_cast<double>(c);
      svg.rect(x, y, cell - 2, cell - 2, "map-ground");
      const double ms = report.waiting_ms[place(shown[r]) * n + place(shown[c])];
      if (r == c || ms <= 0) continue;
      svg.rect(x, y, cell - 2, cell - 2, "late",
               rank_name(shown[r]->rank) + " waits " + in_ms(ms) + " per step for " + rank_name(shown[c]->rank),
               0.08 + 0.92 * ms / largest);
      if (ms >= 0.05) svg.text(x + cell / 2 - 1, y + cell / 2 + 4, fixed(ms, ms < 10 ? 1 : 0), "on-map", kMiddle);
    }
  }
  return svg.done();
}

}  // namespace drivetrain
