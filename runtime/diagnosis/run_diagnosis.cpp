#include <algorithm>

#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/straggler.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// Between the first and the last piece of a run; drift of data and clocks stays below.
constexpr double kCommonChange = 0.1;

struct Joined {
  Verdict verdict;  // of the dearest piece
  double dearest_ms = 0;
  double cost_ms = 0, points = 0;  // over the whole run
  std::size_t pieces = 0;
  std::int64_t first_step = 0;
};

bool same_matter(const Verdict& a, const Verdict& b) {
  return a.rank == b.rank && a.cause == b.cause;
}

void join(std::vector<Joined>& all, const Verdict& v, double share) {
  auto found = std::find_if(all.begin(), all.end(), [&](const Joined& j) { return same_matter(j.verdict, v); });
  if (found == all.end()) {
    all.push_back({.verdict = v, .first_step = v.first_step});
    found = all.end() - 1;
  }
  ++found->pieces;
  found->cost_ms += share * v.cost_ms;
  found->points += share * v.mfu_points.value_or(0);
  if (v.cost_ms <= found->dearest_ms) return;
  found->dearest_ms = v.cost_ms;
  found->verdict = v;
}

}  // namespace

Diagnosis judge_run(const Window& window, const RunFacts& facts, std::size_t piece,
                    std::span<const DeviceFacts> devices, const DetectorOptions& options) {
  check(window);
  const std::size_t steps = window.steps();
  const std::size_t pieces = std::max<std::size_t>(1, steps / std::max(piece, kFewestSteps));
  if (pieces == 1) return judge(window, facts, devices, options);
  Diagnosis run;
  std::vector<Joined> joined;
  std::vector<double> step_ms, detectable;
  double worst = -1;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t from = i * steps / pieces, to = (i + 1) * steps / pieces;
    Window part = window;
    for (auto& rows : part.ranks) rows = rows.subspan(from, to - from);
    Diagnosis d = judge(part, facts, devices, options);
    double cost = 0;
    for (const Verdict& v : d.verdicts) {
      join(joined, v, static_cast<double>(to - from) / static_cast<double>(steps));
      cost += v.cost_ms;
    }
    if (cost > worst) run.victim = d.victim;
    worst = std::max(worst, cost);
    step_ms.push_back(d.step_ms);
    detectable.push_back(d.detectable_ms);
  }
  for (Joined& j : joined) {
    Verdict v = std::move(j.verdict);
    v.evidence.push_back("in " + std::to_string(j.pieces) + " of " + std::to_string(pieces) +
                         " parts of the run, first at step " + std::to_string(j.first_step));
    v.first_step = j.first_step;
    v.cost_ms = j.cost_ms;
    if (v.mfu_points) v.mfu_points = j.points;
    run.verdicts.push_back(std::move(v));
  }
  std::sort(run.verdicts.begin(), run.verdicts.end(),
            [](const Verdict& a, const Verdict& b) { return a.cost_ms > b.cost_ms; });
  if (step_ms.back() > (1 + kCommonChange) * step_ms.front())
    run.notes.push_back("the step became slower: " + in_ms(step_ms.front()) + " at the start of the run, " +
                        in_ms(step_ms.back()) + " at its end");
  run.steps = steps;
  run.first_step = window.ranks.front().front().step;
  run.last_step = window.ranks.front().back().step;
  run.step_ms = median(std::move(step_ms));
  run.detectable_ms = median(std::move(detectable));
  return run;
}

}  // namespace drivetrain
