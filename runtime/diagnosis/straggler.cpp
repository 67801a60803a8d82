#include "runtime/diagnosis/straggler.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/diagnosis/blame.h"
#include "runtime/diagnosis/counterfactual.h"
#include "runtime/diagnosis/explain.h"
#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// Kinds of lateness worth a verdict explain at least this share of the rank's total; smaller ones are by-products.
constexpr double kWorthNaming = 0.2;
// Kinds that together explain less than half of a rank's lateness leave it to the total.
constexpr double kExplained = 0.5;
// Pauses that hop over ranks: healthy hosts lose up to 2 % to them.
constexpr double kChangingRankShare = 0.05;
// ... and some hosts pause twice as often as one step in fifty.
constexpr double kChanceOfPauses = 0.001;
// A window whose second half is this much slower on every rank has a common cause, not a straggler.
constexpr double kCommonChange = 0.1;
// ... and is no chance: a z of 4 comes by itself once in 30,000 windows.
constexpr double kSureErrors = 4;

bool of_process(const Finding& f) {
  return f.signal == Signal::kContention || f.signal == Signal::kStopped;
}

// The kinds of lateness of one rank that verdicts are made of.
std::vector<Finding> of_rank(const Lateness& late, std::vector<Finding> all) {
  const auto size = [&](const Finding& f) { return f.mean_excess_ms(late.steps()); };
  std::sort(all.begin(), all.end(), [&](const Finding& a, const Finding& b) { return size(a) > size(b); });
  std::vector<Finding> kinds;
  const Finding *total = nullptr, *process = nullptr;
  double explained = 0;
  for (const Finding& f : all) {
    // What is both steady and outlying counts once, as the larger.
    if (f.signal == Signal::kTotal) {
      total = total ? total : &f;
    } else if (of_process(f)) {
      process = process ? process : &f;
    } else if (std::none_of(kinds.begin(), kinds.end(), [&](const Finding& k) { return k.signal == f.signal; })) {
      kinds.push_back(f);
      explained += size(f);
    }
  }
  // A process that is held up is late with whatever it does: one cause, not one per kind.
  const double lateness = total ? size(*total) : explained;
  // Its total is the better price: what a hold-up shows of itself is a lower bound.
  if (process && size(*process) >= kExplained * lateness) return {total ? *total : *process};
  if (total && explained < kExplained * lateness) return {*total};
  std::erase_if(kinds, [&](const Finding& f) { return size(f) < kWorthNaming * lateness; });
  return kinds;
}

Victim find_victim(const Window& window, std::span<const std::size_t> steps, int fallback) {
  Victim victim;
  for (int r = 0; r < window.size(); ++r) {
    double wall = 0, waits = 0, cpu = 0, idle = 0;
    for (const std::size_t s : steps) {
      const StepRecord& row = window.ranks[static_cast<std::size_t>(r)][s];
      wall += static_cast<double>(row.wall_ns);
      waits += wait_ms(row) / kMsPerNs;
      cpu += static_cast<double>(row.cpu_ns);
      idle += static_cast<double>(row.at(TimeClass::kDataWait));
    }
    if (wall <= 0 || waits / wall <= victim.waiting) continue;
    victim = {.rank = r,
              .busy = std::min(1.0, cpu > 0 ? cpu / wall : 1 - idle / wall),
              .waiting = waits / wall,
              .waits_for = fallback,
              .collective = "collectives"};
  }
  if (victim.rank < 0) return victim;
  const std::vector<BlameStep> path = blame_path(window, victim.rank, steps);
  if (!path.empty()) {
    victim.waits_for = path.back().culprit;
    victim.collective = meeting_place(path.front().axis);
  }
  return victim;
}

std::string blame_text(const Window& window, const Verdict& v, const Finding& f) {
  std::vector<BlameStep> best;
  // From the rank that waits longest of those whose path ends here.
  for (int r = 0; r < window.size(); ++r) {
    std::vector<BlameStep> path = blame_path(window, r, f.affected);
    if (path.empty() || path.back().culprit != v.rank) continue;
    if (best.empty() || path.size() > best.size() ||
        (path.size() == best.size() && path.front().waits_ms > best.front().waits_ms))
      best = std::move(path);
  }
  return to_text(best,
                 "rank " + std::to_string(v.rank) + " " + name(v.cause) + " " + in_ms(v.late_ms) + " over its peers");
}

void note_common_change(const Lateness& late, Diagnosis& d) {
  std::vector<double> first, second;
  for (std::size_t s = 0; s < late.steps(); ++s) (s < late.steps() / 2 ? first : second).push_back(late.wall(s));
  const double before = median(first), after = median(second);
  const auto squared_error = [](std::span<const double> walls, double center) {
    const double e = kMedianError * robust_sigma(walls, center);
    return e * e / static_cast<double>(walls.size());
  };
  const double error = std::sqrt(squared_error(first, before) + squared_error(second, after));
  if (after > (1 + kCommonChange) * before && after - before > kSureErrors * error)
    d.notes.push_back("every rank became slower: " + in_ms(before) + " in the first half of the window, " +
                      in_ms(after) + " in the second; look for heat, a shared disk or a shared machine");
}

// Verdicts with their costs; those that cost less than `least` alone and beside the others are dropped.
void judge_costs(const Window& window, const Lateness& late, const RunFacts& facts,
                 std::span<const DeviceFacts> devices, std::vector<Finding> findings, double least, Diagnosis& d) {
  const Counterfactual replay(late);
  // Wild steps may be clipped only where the fault is in most steps, not where it is the wild ones.
  const auto in_most = [&](const Finding& f) { return 2 * f.affected.size() > late.steps(); };
  const auto steady = [&](const std::vector<Finding>& all) { return std::all_of(all.begin(), all.end(), in_most); };
  const auto repairs = [](const std::vector<Finding>& all) {
    std::vector<Repair> r;
    for (const Finding& f : all) r.push_back({f.rank, f.signal});
    return r;
  };
  const auto alone = [&](const Finding& f) { return replay.gain(repairs({f}), in_most(f)); };
  std::sort(findings.begin(), findings.end(), [&](const Finding& a, const Finding& b) {
    return a.mean_excess_ms(late.steps()) > b.mean_excess_ms(late.steps());
  });
  if (findings.size() > Counterfactual::kMostRepairs)
    findings.erase(findings.begin() + Counterfactual::kMostRepairs, findings.end());
  // Two equally slow ranks gain nothing one by one, so what a repair adds to all others counts too.
  const double together = replay.gain(repairs(findings), steady(findings));
  std::vector<Finding> kept;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    std::vector<Finding> others = findings;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const double adds = together - (others.empty() ? 0 : replay.gain(repairs(others), steady(findings)));
    if (std::max(alone(findings[i]), adds) >= least) kept.push_back(findings[i]);
  }
  const std::vector<double> costs = replay.parts(repairs(kept), steady(kept));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    Verdict v = explain(window, late, kept[i], devices);
    v.cost_ms = costs[i];
    v.blame = blame_text(window, v, kept[i]);
    v.action = action_for(v, window.tp, facts);
    d.verdicts.push_back(std::move(v));
  }
}

void judge_changing_ranks(const Window& window, const Lateness& late, const RunFacts& facts, Diagnosis& d) {
  const Finding f = changing_rank_pauses(late, d.step_ms);
  if (f.affected.empty() || f.p > kChanceOfPauses) return;
  const Repair everybody{-1, Signal::kTotal};
  const double cost = Counterfactual(late).gain(std::span(&everybody, 1), false);
  if (cost < kChangingRankShare * d.step_ms) return;
  Verdict v;
  v.cause = Cause::kHostGap;
  v.phase = TimeClass::kHostGap;
  v.pattern = f.pattern;
  v.first_step = window.ranks.front()[f.affected.front()].step;
  v.late_ms = f.excess_ms;
  v.cost_ms = cost;
  v.confidence = 1 - f.p;
  v.evidence.push_back("pauses of about " + in_ms(f.excess_ms) + " in " + std::to_string(f.affected.size()) + " of " +
                       std::to_string(late.steps()) + " steps, on changing ranks");
  v.action = action_for(v, window.tp, facts);
  d.verdicts.push_back(std::move(v));
}

void price_in_points(Diagnosis& d, const RunFacts& facts, double mean_step_ms) {
  double before = 0;  // verdicts repaired in order; parts sum to the whole
  for (Verdict& v : d.verdicts) {
    if (facts.mfu)
      v.mfu_points = mfu_points_gained(*facts.mfu, mean_step_ms, before + v.cost_ms) -
                     mfu_points_gained(*facts.mfu, mean_step_ms, before);
    before += v.cost_ms;
  }
}

}  // namespace

Diagnosis judge(const Window& window, const RunFacts& facts, std::span<const DeviceFacts> devices,
                const DetectorOptions& options) {
  const Lateness late(window);
  Diagnosis d;
  d.steps = late.steps();
  d.too_short = d.steps < kFewestSteps;
  if (d.steps == 0) return d;
  d.first_step = window.ranks.front().front().step;
  d.last_step = window.ranks.front().back().step;
  std::vector<double> walls;
  for (std::size_t s = 0; s < d.steps; ++s) walls.push_back(late.wall(s));
  const double mean_step_ms = mean(walls);
  d.step_ms = median(std::move(walls));
  if (d.too_short || window.size() < 2) return d;

  const double least = options.smallest_effect * d.step_ms;
  d.detectable_ms = std::max(least, detectable_ms(late, options.false_alarms));
  std::map<int, std::vector<Finding>> by_rank;
  for (Finding& f : significant_lateness(late, d.step_ms, options.false_alarms))
    by_rank[f.rank].push_back(std::move(f));
  std::vector<Finding> findings;
  for (auto& [rank, all] : by_rank)
    for (Finding& f : of_rank(late, std::move(all))) findings.push_back(std::move(f));
  judge_costs(window, late, facts, devices, std::move(findings), least, d);
  if (d.verdicts.empty()) judge_changing_ranks(window, late, facts, d);
  std::sort(d.verdicts.begin(), d.verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.cost_ms > b.cost_ms; });
  price_in_points(d, facts, mean_step_ms);
  note_common_change(late, d);
  std::vector<std::size_t> all(d.steps);
  for (std::size_t s = 0; s < d.steps; ++s) all[s] = s;
  d.victim = find_victim(window, all, d.verdicts.empty() ? -1 : d.verdicts.front().rank);
  return d;
}

}  // namespace drivetrain
