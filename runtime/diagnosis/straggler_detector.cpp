#include "runtime/diagnosis/straggler_detector.h"

#include <algorithm>

#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// Its own work grew by at least half of its lateness: the rank changed, not its peers.
constexpr double kOwnChange = 0.5;
// Since the first healthy window; drift of data and clocks stays below.
constexpr double kCommonChange = 0.1;

double own_work_ms(const Window& window, int rank) {
  std::vector<double> own;
  for (const StepRecord& row : window.ranks[static_cast<std::size_t>(rank)]) own.push_back(local_ms(row));
  return median(std::move(own));
}

}  // namespace

Diagnosis StragglerDetector::observe(const Window& last_steps, std::span<const DeviceFacts> devices) {
  Diagnosis d = judge(last_steps, facts_, devices, options_);
  for (Verdict& v : d.verdicts) {
    const auto same = [&](const Verdict& b) { return b.rank == v.rank && b.cause == v.cause; };
    const auto earlier = std::find_if(before_.begin(), before_.end(), same);
    if (earlier != before_.end()) {
      v.times_seen = earlier->times_seen + 1;
      v.first_step = earlier->first_step;
    }
    if (v.rank >= 0) compare_with_before(last_steps, v);
  }
  if (d.verdicts.empty() && d.step_ms > (1 + kCommonChange) * first_healthy_step_ms_ && first_healthy_step_ms_ > 0)
    d.notes.push_back("every rank became slower: " + in_ms(first_healthy_step_ms_) + " per step at first, " +
                      in_ms(d.step_ms) + " now; look for heat, a shared disk or a shared machine");
  before_ = d.verdicts;
  remember(last_steps, d);
  return d;
}

void StragglerDetector::compare_with_before(const Window& window, Verdict& v) const {
  // The newest look that ended before the fault began: later ones may hold some of it.
  const auto past = std::find_if(healthy_.rbegin(), healthy_.rend(),
                                 [&](const HealthyLook& look) { return look.last_step < v.first_step; });
  if (past == healthy_.rend()) return;
  const double before = past->own_ms[static_cast<std::size_t>(v.rank)], now = own_work_ms(window, v.rank);
  if (now - before < kOwnChange * v.late_ms) return;
  v.evidence.push_back("its own work took " + in_ms(before) + " per step until step " +
                       std::to_string(past->last_step) + ", " + in_ms(now) + " now");
  v.confidence = 1 - (1 - v.confidence) / 2;
}

void StragglerDetector::remember(const Window& window, const Diagnosis& d) {
  if (d.too_short || !d.verdicts.empty()) return;
  HealthyLook look{.last_step = d.last_step, .own_ms = {}};
  for (int r = 0; r < window.size(); ++r) look.own_ms.push_back(own_work_ms(window, r));
  if (healthy_.size() == kLooks) healthy_.erase(healthy_.begin());
  healthy_.push_back(std::move(look));
  if (first_healthy_step_ms_ == 0) first_healthy_step_ms_ = d.step_ms;
}

}  // namespace drivetrain
