#include "runtime/diagnosis/waterfall.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace drivetrain {
namespace {

// Whole numbers next to `exact` that sum to `total`: everything down, then up where the remainders are largest.
std::vector<std::int64_t> rounded_to_sum(const std::vector<double>& exact, std::int64_t total) {
  std::vector<std::int64_t> result;
  std::vector<std::size_t> order(exact.size());
  std::iota(order.begin(), order.end(), 0U);
  for (const double x : exact) result.push_back(static_cast<std::int64_t>(std::floor(x)));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return exact[a] - std::floor(exact[a]) > exact[b] - std::floor(exact[b]);
  });
  std::int64_t missing = total - std::accumulate(result.begin(), result.end(), std::int64_t{0});
  for (std::size_t i = 0; missing > 0; i = (i + 1) % order.size(), --missing) ++result[order[i]];
  for (std::size_t i = order.size(); missing < 0; ++missing) {
    i = i == 0 ? order.size() - 1 : i - 1;
    --result[order[i]];
  }
  return result;
}

bool is_matrix(std::size_t op) {
  return static_cast<OpClass>(op) == OpClass::kGemm || static_cast<OpClass>(op) == OpClass::kAttention;
}

// Sums over all rows of a window, in nanoseconds.
struct Sums {
  double wall = 0, named = 0;
  std::array<double, kTimeClasses> classes{};
  double matrix = 0, memory_bound = 0;
  std::map<int, double> waiting;  // by culprit
  double at(TimeClass c) const { return classes[static_cast<std::size_t>(c)]; }
};

Sums sums_of(const Window& window) {
  Sums sums;
  for (const auto& rows : window.ranks)
    for (const StepRecord& row : rows) {
      sums.wall += static_cast<double>(row.wall_ns);
      for (std::size_t c = 0; c < kTimeClasses; ++c) {
        sums.classes[c] += static_cast<double>(row.class_ns[c]);
        sums.named += static_cast<double>(row.class_ns[c]);
      }
      for (std::size_t k = 0; k < kOpClasses; ++k)
        if (static_cast<OpClass>(k) != OpClass::kOptimizer)
          (is_matrix(k) ? sums.matrix : sums.memory_bound) += static_cast<double>(row.ops[k].ns);
      for (std::size_t a = 0; a < kCommAxes; ++a) {
        const double waited = wait_ms(row, static_cast<CommAxis>(a)) / kMsPerNs;
        const AxisTotals& axis = row.axes[a];
        const double blamed = axis.culprit >= 0 ? std::min(waited, static_cast<double>(axis.culprit_ns)) : 0;
        if (blamed > 0) sums.waiting[axis.culprit] += blamed;
        sums.waiting[-1] += waited - blamed;
      }
    }
  return sums;
}

}  // namespace

const char* name(Loss loss) {
  switch (loss) {
    case Loss::kRecompute:
      return "recompute";
    case Loss::kMatrixBelowPeak:
      return "matrix products below peak";
    case Loss::kMemoryBound:
      return "memory-bound operators";
    case Loss::kHostGap:
      return "host and launch gaps";
    case Loss::kTpTransfer:
      return "tp communication";
    case Loss::kDpTransfer:
      return "dp communication";
    case Loss::kWorldTransfer:
      return "world communication";
    case Loss::kWaiting:
      return "waiting";
    case Loss::kData:
      return "data";
    case Loss::kCopy:
      return "copies";
    case Loss::kOptimizer:
      return "optimizer";
    case Loss::kCheckpoint:
      return "checkpoint";
    case Loss::kEval:
      return "evaluation";
    case Loss::kOther:
      break;
  }
  return "other";
}

std::string WaterfallRow::label() const {
  if (loss != Loss::kWaiting) return name(loss);
  return culprit >= 0 ? "waiting for rank " + std::to_string(culprit) : "waiting, nobody named";
}

Waterfall waterfall(const Window& window, double model_flops, std::optional<double> peak_flops_per_rank) {
  check(window);
  Waterfall w;
  const double cells = static_cast<double>(window.steps()) * window.size();
  if (cells == 0) return w;
  const Sums sums = sums_of(window);
  const double ideal_ns = peak_flops_per_rank && *peak_flops_per_rank > 0
                              ? 1e9 * model_flops / (window.size() * *peak_flops_per_rank)
                              : 0;
  // Operators of the passes; those of recomputation are taken out in proportion.
  const double passes = sums.at(TimeClass::kForward) + sums.at(TimeClass::kBackward);
  const double operators = sums.matrix + sums.memory_bound;
  const double memory_bound = operators > 0 ? passes * sums.memory_bound / operators : 0;
  const double residual = sums.wall - sums.named;

  std::vector<WaterfallRow> rows;
  std::vector<double> exact_us{ideal_ns * 1e-3};
  const auto add = [&](Loss loss, double ns, int culprit = -1) {
    rows.push_back({.loss = loss, .culprit = culprit});
    exact_us.push_back(ns / cells * 1e-3);
  };
  add(Loss::kRecompute, sums.at(TimeClass::kRecompute));
  add(Loss::kMatrixBelowPeak, passes - memory_bound - ideal_ns * cells);
  add(Loss::kMemoryBound, memory_bound);
  add(Loss::kHostGap, sums.at(TimeClass::kHostGap));
  add(Loss::kTpTransfer, sums.at(TimeClass::kTpTransfer));
  add(Loss::kDpTransfer, sums.at(TimeClass::kDpTransfer));
  add(Loss::kWorldTransfer, sums.at(TimeClass::kWorldTransfer));
  for (const auto& [culprit, ns] : sums.waiting) add(Loss::kWaiting, ns, culprit);
  add(Loss::kData, sums.at(TimeClass::kDataWait));
  add(Loss::kCopy, sums.at(TimeClass::kCopy));
  add(Loss::kOptimizer, sums.at(TimeClass::kOptimizer));
  add(Loss::kCheckpoint, sums.at(TimeClass::kCheckpoint));
  add(Loss::kEval, sums.at(TimeClass::kEval));
  add(Loss::kOther, sums.at(TimeClass::kOther) + residual);

  const double step_us = sums.wall / cells * 1e-3;
  w.step_us = std::llround(step_us);
  const std::vector<std::int64_t> us = rounded_to_sum(exact_us, w.step_us);
  std::vector<double> exact_points;
  for (const double x : exact_us) exact_points.push_back(step_us > 0 ? 1e5 * x / step_us : 0);
  const std::vector<std::int64_t> points = rounded_to_sum(exact_points, step_us > 0 ? 100000 : 0);
  w.ideal_us = us[0];
  w.achieved_milli_points = points[0];
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].us = us[i + 1];
    rows[i].milli_points = points[i + 1];
  }
  w.rows = std::move(rows);
  return w;
}

std::vector<RooflineRow> roofline(const Window& window, double peak_flops, double peak_bytes_per_s) {
  check(window);
  std::vector<RooflineRow> result;
  const double cells = static_cast<double>(window.steps()) * window.size();
  for (std::size_t k = 0; k < kOpClasses; ++k) {
    double ns = 0, flops = 0, bytes = 0;
    for (const auto& rows : window.ranks)
      for (const StepRecord& row : rows) {
        ns += static_cast<double>(row.ops[k].ns);
        flops += row.ops[k].flops;
        bytes += row.ops[k].bytes;
      }
    if (ns <= 0 || bytes <= 0) continue;
    RooflineRow row{.op = static_cast<OpClass>(k), .ms = ns * kMsPerNs / cells, .flops_per_byte = flops / bytes};
    row.flops_per_s = flops / ns * 1e9;
    row.bytes_per_s = bytes / ns * 1e9;
    row.compute_bound = row.flops_per_byte > peak_flops / peak_bytes_per_s;
    row.share_of_bound = row.compute_bound ? row.flops_per_s / peak_flops : row.bytes_per_s / peak_bytes_per_s;
    result.push_back(row);
  }
  return result;
}

}  // namespace drivetrain
