// Loss, and MFU or speed, over the steps.
#include <algorithm>
#include <cmath>
#include <functional>

#include "launcher/report/charts.h"
#include "launcher/report/svg.h"
#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

using enum Svg::Anchor;
using Value = std::function<std::optional<double>(const CurvePoint&)>;

// Steps of 1, 2 or 5 times a power of ten that give about four lines.
double grid_step(double range) {
  const double rough = range / 4, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

struct Series {
  std::string css, name;
  bool dots;
  Value value;
};

std::string curve(const RunReport& report, const std::string& label, const std::vector<Series>& all, int digits) {
  constexpr double kWidth = 530, kHeight = 220, kLeft = 62, kRight = 14, kTop = 12, kBottom = 28;
  std::vector<double> values;
  for (const CurvePoint& p : report.curve)
    for (const Series& s : all)
      if (const auto y = s.value(p); y && std::isfinite(*y)) values.push_back(*y);
  if (report.curve.size() < 2 || values.empty()) return "";
  // A first loss or a stall far outside is cut off rather than flattening the rest.
  double low = *std::min_element(values.begin(), values.end()),
         high = *std::max_element(values.begin(), values.end());
  const double middle = median(values), usual = std::max(quantile(values, 0.99) - middle, middle - low);
  high = std::min(high, middle + 3 * usual);
  if (high - low < 1e-9 * std::abs(high) || high == low) high = low + std::max(1e-3, 0.01 * std::abs(low));
  const double first = static_cast<double>(report.curve.front().step),
               last = static_cast<double>(report.curve.back().step);
  const auto x_of = [&](std::int64_t step) {
    return kLeft + (kWidth - kLeft - kRight) * (static_cast<double>(step) - first) / std::max(1.0, last - first);
  };
  const auto y_of = [&](double v) {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (std::min(v, high) - low) / (high - low);
  };
  Svg svg(kWidth, kHeight, label + " by step");
  const double grid = grid_step(high - low);
  for (double v = std::ceil(low / grid) * grid; v <= high + 1e-9; v += grid) {
    svg.line(kLeft, y_of(v), kWidth - kRight, y_of(v), "rule");
    svg.text(kLeft - 8, y_of(v) + 4,
             fixed(v, grid < 0.1 ? std::max(digits, 2)
                      : grid < 1 ? std::max(digits, 1)
                                 : 0),
             "small", kEnd);
  }
  for (const Series& s : all) {
    std::vector<std::pair<double, double>> points;
    for (const CurvePoint& p : report.curve) {
      const auto y = s.value(p);
      if (!y || !std::isfinite(*y)) continue;
      points.emplace_back(x_of(p.step), y_of(*y));
      if (s.dots)
        svg.dot(points.back().first, points.back().second, 4, s.css,
                s.name + " at step " + std::to_string(p.step) + ": " + fixed(*y, 4));
    }
    if (!s.dots) svg.polyline(points, s.css);
  }
  svg.text(kLeft, kHeight - 8, "step " + std::to_string(report.curve.front().step), "small");
  svg.text(kWidth - kRight, kHeight - 8, "step " + std::to_string(report.curve.back().step), "small", kEnd);
  return svg.done();
}

}  // namespace

std::string loss_chart(const RunReport& report) {
  return curve(report, "loss",
               {{"curve-a", "loss", false, [](const CurvePoint& p) { return std::optional(p.loss); }},
                {"dot-b", "held-out loss", true, [](const CurvePoint& p) { return p.eval_loss; }}},
               1);
}

std::string mfu_chart(const RunReport& report) {
  const bool known =
      std::any_of(report.curve.begin(), report.curve.end(), [](const CurvePoint& p) { return p.mfu.has_value(); });
  if (!known)
    return curve(report, "tokens a second",
                 {{"curve-c", "tokens/s", false, [](const CurvePoint& p) { return std::optional(p.tokens_per_s); }}},
                 0);
  const auto percent = [](const CurvePoint& p) { return p.mfu ? std::optional(100 * *p.mfu) : std::nullopt; };
  return curve(report, "MFU in percent", {{"curve-c", "MFU %", false, percent}}, 1);
}

}  // namespace drivetrain
