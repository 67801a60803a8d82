#include "runtime/diagnosis/explain.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/diagnosis/device_rules.h"
#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// A cause that explains at least half of the lateness is the cause.
constexpr double kExplains = 0.5;
// Memory traffic is the bound when memory-bound operators lose at least twice what matrix products lose, and more than
// the 5 % that differing caches and pages make.
constexpr double kMemoryRatio = 2, kMemoryLeast = 0.05;

constexpr std::array kLocal{TimeClass::kDataWait,  TimeClass::kCopy,      TimeClass::kForward, TimeClass::kBackward,
                            TimeClass::kRecompute, TimeClass::kOptimizer, TimeClass::kHostGap, TimeClass::kCheckpoint,
                            TimeClass::kEval,      TimeClass::kOther};

double ms(std::int64_t ns) {
  return static_cast<double>(ns) * kMsPerNs;
}

// Median over the steps of value(rank) minus the median of value(peers).
template <class Value>
double over_peers(const Window& window, int rank, std::span<const std::size_t> steps, Value&& value) {
  std::vector<double> excess;
  for (const std::size_t s : steps) {
    std::vector<double> peers;
    for (int j = 0; j < window.size(); ++j)
      if (j != rank) peers.push_back(value(window.ranks[static_cast<std::size_t>(j)][s]));
    excess.push_back(value(window.ranks[static_cast<std::size_t>(rank)][s]) - median(std::move(peers)));
  }
  return median(std::move(excess));
}

// Time per unit of work of one operator class over the chosen steps.
double cost_of(const Window& window, int rank, std::span<const std::size_t> steps, std::size_t op) {
  double ns = 0, work = 0;
  for (const std::size_t s : steps) {
    const OpTotals& t = window.ranks[static_cast<std::size_t>(rank)][s].ops[op];
    ns += static_cast<double>(t.ns);
    work += t.bytes > 0 ? t.bytes : t.flops;
  }
  return work > 0 ? ns / work : 0;
}

bool in_signal(TimeClass c, Signal signal) {
  switch (signal) {
    case Signal::kData:
      return c == TimeClass::kDataWait;
    case Signal::kCopy:
      return c == TimeClass::kCopy;
    case Signal::kSlow:
      return c == TimeClass::kForward || c == TimeClass::kBackward || c == TimeClass::kRecompute ||
             c == TimeClass::kOptimizer;
    case Signal::kLoad:
      return c == TimeClass::kForward || c == TimeClass::kBackward || c == TimeClass::kRecompute;
    case Signal::kHost:
      return c == TimeClass::kHostGap;
    case Signal::kCheckpoint:
      return c == TimeClass::kCheckpoint;
    case Signal::kEval:
      return c == TimeClass::kEval;
    case Signal::kOther:
      return c == TimeClass::kOther;
    case Signal::kContention:
    case Signal::kStopped:
    case Signal::kTotal:
      break;
  }
  return true;
}

// The kind of work that a class is part of; kSlow for the compute classes.
Signal signal_of(TimeClass c) {
  for (std::size_t k = 0; k < kSignals; ++k)
    if (in_signal(c, static_cast<Signal>(k))) return static_cast<Signal>(k);
  return Signal::kTotal;
}

// How long the process was held up, per affected step and over its peers.
struct ProcessTimes {
  double run_delay = 0, stopped = 0;
};
ProcessTimes process_times(const Lateness& late, const Finding& f) {
  const auto typical = [&](Signal signal) {
    std::vector<double> excess;
    for (const std::size_t s : f.affected) excess.push_back(late.excess(f.rank, signal)[s]);
    return median(std::move(excess));
  };
  return {.run_delay = typical(Signal::kContention), .stopped = typical(Signal::kStopped)};
}

Cause cause_of(Signal signal, double excess_ms, const ProcessTimes& process, const Slowdowns& slow) {
  switch (signal) {
    case Signal::kData:
      return Cause::kData;
    case Signal::kCopy:
      return Cause::kCopy;
    case Signal::kLoad:
      return Cause::kUnequalWork;
    case Signal::kHost:
      return process.run_delay >= kExplains * excess_ms ? Cause::kCoreContention : Cause::kHostGap;
    case Signal::kCheckpoint:
      return Cause::kCheckpoint;
    case Signal::kEval:
      return Cause::kEval;
    case Signal::kContention:
      return Cause::kCoreContention;
    case Signal::kStopped:
      return Cause::kStopped;
    case Signal::kSlow:
    case Signal::kOther:
    case Signal::kTotal:
      break;
  }
  if (process.run_delay >= kExplains * excess_ms) return Cause::kCoreContention;
  if (process.stopped >= kExplains * excess_ms) return Cause::kStopped;
  if (signal == Signal::kOther || signal == Signal::kTotal) return Cause::kOther;
  const double memory_loss = slow.memory_bound - 1, matrix_loss = slow.matrix - 1;
  if (slow.memory_bound > 0 && memory_loss > kMemoryLeast && memory_loss >= kMemoryRatio * matrix_loss)
    return Cause::kMemoryBandwidth;
  return Cause::kSlowDevice;
}

// Share of the peers' recorded waiting that names this rank or one of its tp peers (who pass its lateness on). Negative
// when nobody recorded anything.
double agreement(const Window& window, const Finding& f) {
  double named = 0, all = 0;
  for (int j = 0; j < window.size(); ++j)
    for (const std::size_t s : f.affected)
      for (const AxisTotals& a : window.ranks[static_cast<std::size_t>(j)][s].axes) {
        if (j == f.rank || a.culprit < 0) continue;
        all += static_cast<double>(a.culprit_ns);
        if (a.culprit / window.tp == f.rank / window.tp) named += static_cast<double>(a.culprit_ns);
      }
  return all > 0 ? named / all : -1;
}

void add_work_evidence(const Window& window, const Finding& f, std::vector<std::string>& evidence) {
  double most = 0, least = 0, sum = 0, squares_own = 0, squares_sum = 0;
  for (int j = 0; j < window.size(); ++j) {
    double tokens = 0;
    for (const std::size_t s : f.affected) {
      const StepRecord& row = window.ranks[static_cast<std::size_t>(j)][s];
      tokens += static_cast<double>(row.own_tokens);
      squares_sum += row.own_length_squares;
      if (j == f.rank) squares_own += row.own_length_squares;
    }
    most = j == 0 ? tokens : std::max(most, tokens);
    least = j == 0 ? tokens : std::min(least, tokens);
    sum += tokens;
  }
  if (least <= 0) return;
  evidence.push_back("tokens of the ranks " + fixed(most / least, 1) + ":1, max/mean " +
                     fixed(most * window.size() / sum, 2));
  if (squares_sum > 0)
    evidence.push_back("sum of squared lengths " + fixed(squares_own * window.size() / squares_sum, 2) + " x mean");
}

}  // namespace

Slowdowns slowdowns(const Window& window, int rank, std::span<const std::size_t> steps) {
  double matrix_time = 0, matrix_expected = 0, memory_time = 0, memory_expected = 0;
  for (std::size_t k = 0; k < kOpClasses; ++k) {
    std::vector<double> peers;
    for (int j = 0; j < window.size(); ++j)
      if (j != rank) peers.push_back(cost_of(window, j, steps, k));
    const double own = cost_of(window, rank, steps, k), usual = median(std::move(peers));
    if (own <= 0 || usual <= 0) continue;
    double ns = 0;
    for (const std::size_t s : steps)
      ns += static_cast<double>(window.ranks[static_cast<std::size_t>(rank)][s].ops[k].ns);
    const auto op = static_cast<OpClass>(k);
    const bool matrix = op == OpClass::kGemm || op == OpClass::kAttention;
    (matrix ? matrix_time : memory_time) += ns;
    (matrix ? matrix_expected : memory_expected) += ns * usual / own;
  }
  return {.matrix = matrix_expected > 0 ? matrix_time / matrix_expected : 0,
          .memory_bound = memory_expected > 0 ? memory_time / memory_expected : 0};
}

Verdict explain(const Window& window, const Lateness& late, const Finding& f, std::span<const DeviceFacts> devices) {
  const ProcessTimes process = process_times(late, f);
  const Slowdowns slow = slowdowns(window, f.rank, f.affected);
  Verdict v;
  v.rank = f.rank;
  v.host = window.host(f.rank);
  v.pattern = f.pattern;
  v.period = f.period;
  v.first_step = window.ranks.front()[f.onset].step;
  v.late_ms = f.excess_ms;
  double worst = -1;
  for (const TimeClass c : kLocal) {
    if (!in_signal(c, f.signal)) continue;
    const double excess =
        over_peers(window, f.rank, f.affected, [&](const StepRecord& row) { return ms(row.at(c)); });
    if (excess > worst) {
      worst = excess;
      v.phase = c;
    }
  }
  const bool held = std::max(process.run_delay, process.stopped) >= kExplains * f.excess_ms;
  const bool one_class = f.signal == Signal::kTotal && !held && worst >= kExplains * f.excess_ms;
  const Signal signal = one_class ? signal_of(v.phase) : f.signal;
  v.cause = cause_of(signal, f.excess_ms, process, slow);
  const Signal shown = v.cause == Cause::kCoreContention ? Signal::kContention
                       : v.cause == Cause::kStopped      ? Signal::kStopped
                                                         : signal;
  std::vector<double> own, peers;
  for (const std::size_t s : f.affected)
    for (int j = 0; j < late.ranks(); ++j) (j == f.rank ? own : peers).push_back(late.own(j, shown, s));
  v.own_ms = median(std::move(own));
  v.peers_ms = median(std::move(peers));

  const std::string steps = std::to_string(late.steps());
  v.evidence.push_back(in_ms(v.own_ms) + " where its peers have " + in_ms(v.peers_ms) + ", in " +
                       std::to_string(f.affected.size()) + " of " + steps + " steps");
  if (v.cause == Cause::kUnequalWork) add_work_evidence(window, f, v.evidence);
  if (process.run_delay > 0.1 * f.excess_ms)
    v.evidence.push_back("ready to run but without a core for " + in_ms(process.run_delay) +
                         " per step over its peers");
  if (process.stopped > 0.1 * f.excess_ms)
    v.evidence.push_back("neither running nor ready for " + in_ms(process.stopped) + " per step over its peers");
  if (signal == Signal::kSlow && slow.matrix > 0)
    v.evidence.push_back(
        "same work: matrix products take " + fixed(slow.matrix, 2) + " x the peers' time" +
        (slow.memory_bound > 0 ? ", memory-bound operators " + fixed(slow.memory_bound, 2) + " x" : ""));
  const double agree = agreement(window, f);
  if (agree >= 0) v.evidence.push_back(in_percent(agree) + " of its peers' waiting names it");
  if (static_cast<std::size_t>(f.rank) < devices.size())
    for (const DeviceFinding& d : device_findings(devices, f.rank)) v.evidence.push_back(d.sentence);
  // Unknown agreement counts as half.
  v.confidence = (1 - f.p) * (0.5 + 0.5 * f.persistence) * (0.5 + 0.5 * (agree < 0 ? 0.5 : agree));
  return v;
}

}  // namespace drivetrain
