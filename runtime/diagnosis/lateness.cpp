#include "runtime/diagnosis/lateness.h"

#include <algorithm>

#include "runtime/diagnosis/robust_stats.h"

namespace drivetrain {
namespace {

double ms(const StepRecord& row, TimeClass c) {
  return static_cast<double>(row.at(c)) * kMsPerNs;
}

double passes_ms(const StepRecord& row) {
  return ms(row, TimeClass::kForward) + ms(row, TimeClass::kBackward) + ms(row, TimeClass::kRecompute);
}

double own_ms(const StepRecord& row, Signal signal) {
  switch (signal) {
    case Signal::kData:
      return ms(row, TimeClass::kDataWait);
    case Signal::kCopy:
      return ms(row, TimeClass::kCopy);
    case Signal::kSlow:
    case Signal::kLoad:
      return passes_ms(row) + ms(row, TimeClass::kOptimizer);
    case Signal::kHost:
      return ms(row, TimeClass::kHostGap);
    case Signal::kCheckpoint:
      return ms(row, TimeClass::kCheckpoint);
    case Signal::kEval:
      return ms(row, TimeClass::kEval);
    case Signal::kOther:
      return ms(row, TimeClass::kOther);
    case Signal::kContention:
    case Signal::kStopped:
      return 0;  // measure_absence()
    case Signal::kTotal:
      break;
  }
  return local_ms(row);
}

// Off the processor although nothing that blocks by design accounts for it.
double unexplained_absence(const StepRecord& row) {
  std::int64_t blocked = 0;
  for (const TimeClass c : {TimeClass::kDataWait, TimeClass::kCheckpoint, TimeClass::kEval, TimeClass::kHostGap})
    blocked += row.at(c);
  const std::int64_t absent = row.wall_ns - row.cpu_ns - row.run_delay_ns - blocked;
  return static_cast<double>(std::max<std::int64_t>(0, absent)) * kMsPerNs;
}

// Median over all ranks but one.
double peers_median(const std::vector<double>& by_rank, int rank) {
  std::vector<double> peers;
  for (std::size_t r = 0; r < by_rank.size(); ++r)
    if (static_cast<int>(r) != rank) peers.push_back(by_rank[r]);
  return median(std::move(peers));
}

}  // namespace

Lateness::Lateness(const Window& window) : ranks_(window.size()), steps_(window.steps()) {
  check(window);
  const std::size_t cells = static_cast<std::size_t>(ranks_) * steps_;
  own_.resize(cells * kSignals);
  excess_.resize(cells * kSignals);
  passes_.resize(cells);
  load_.assign(cells, 1);
  wall_.assign(steps_, 0);
  for (int r = 0; r < ranks_; ++r)
    for (std::size_t s = 0; s < steps_; ++s) {
      const StepRecord& row = window.ranks[static_cast<std::size_t>(r)][s];
      for (std::size_t k = 0; k < kSignals; ++k)
        own_[at(r, static_cast<Signal>(k)) + s] = own_ms(row, static_cast<Signal>(k));
      passes_[static_cast<std::size_t>(r) * steps_ + s] = passes_ms(row);
      wall_[s] += static_cast<double>(row.wall_ns) * kMsPerNs / ranks_;
    }
  measure_load(window);
  measure_absence(window);
  if (ranks_ > 1)
    for (std::size_t s = 0; s < steps_; ++s) compare(s);
}

// Work as the time that these operators take at the speed of all ranks together: FLOPs of each class times the pooled
// time per FLOP. Without counted FLOPs, tokens.
void Lateness::measure_load(const Window& window) {
  std::array<double, kOpClasses> cost{};
  for (std::size_t k = 0; k < kOpClasses; ++k) {
    if (static_cast<OpClass>(k) == OpClass::kOptimizer) continue;
    double ns = 0, flops = 0;
    for (const auto& rows : window.ranks)
      for (const StepRecord& row : rows) {
        ns += static_cast<double>(row.ops[k].ns);
        flops += row.ops[k].flops;
      }
    if (flops > 0) cost[k] = ns / flops;
  }
  for (std::size_t s = 0; s < steps_; ++s) {
    std::vector<double> by_flops(window.ranks.size(), 0), by_tokens;
    for (std::size_t r = 0; r < window.ranks.size(); ++r) {
      const StepRecord& row = window.ranks[r][s];
      for (std::size_t k = 0; k < kOpClasses; ++k) by_flops[r] += row.ops[k].flops * cost[k];
      by_tokens.push_back(static_cast<double>(row.own_tokens));
    }
    const auto known = [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()) > 0; };
    const std::vector<double>& work = known(by_flops) ? by_flops : by_tokens;
    if (!known(work)) continue;
    const double average = mean(work);
    for (std::size_t r = 0; r < work.size(); ++r) load_[r * steps_ + s] = work[r] / average;
  }
}

// A long wait may sleep and is no absence. Transfers may, too; they are alike on all ranks and cancel in the excess. What
// is left is a lower bound: host gaps and data waits may have been busy.
void Lateness::measure_absence(const Window& window) {
  for (const auto& rows : window.ranks)
    for (const StepRecord& row : rows)
      if (row.cpu_ns <= 0) return;
  for (int r = 0; r < ranks_; ++r)
    for (std::size_t s = 0; s < steps_; ++s) {
      const StepRecord& row = window.ranks[static_cast<std::size_t>(r)][s];
      own_[at(r, Signal::kContention) + s] = static_cast<double>(row.run_delay_ns) * kMsPerNs;
      own_[at(r, Signal::kStopped) + s] = std::max(0.0, unexplained_absence(row) - wait_ms(row));
    }
}

void Lateness::compare(std::size_t step) {
  const auto by_rank = [&](auto&& value) {
    std::vector<double> v;
    for (int r = 0; r < ranks_; ++r) v.push_back(value(r));
    return v;
  };
  const std::vector<double> loads = by_rank([&](int r) { return load(r, step); });
  const std::vector<double> rates = by_rank([&](int r) { return passes(r, step) / load(r, step); });
  const std::vector<double> updates = by_rank([&](int r) { return optimizer(r, step); });
  const double common_rate = median(rates);
  for (int r = 0; r < ranks_; ++r)
    for (std::size_t k = 0; k < kSignals; ++k) {
      const auto signal = static_cast<Signal>(k);
      double& out = excess_[at(r, signal) + step];
      if (signal == Signal::kSlow) {
        out =
            passes(r, step) - peers_median(rates, r) * load(r, step) + optimizer(r, step) - peers_median(updates, r);
      } else if (signal == Signal::kLoad) {
        out = common_rate * (load(r, step) - peers_median(loads, r));
      } else {
        const std::vector<double> values = by_rank([&](int j) { return own(j, signal, step); });
        out = own(r, signal, step) - peers_median(values, r);
      }
    }
}

}  // namespace drivetrain
