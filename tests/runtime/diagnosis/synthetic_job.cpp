#include "tests/runtime/diagnosis/synthetic_job.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace drivetrain {
namespace {

using Kind = PlantedFault::Kind;

// Numbers of phases: those of Phase in step_record.h.
std::int64_t ns(double ms) {
  return static_cast<std::int64_t>(std::llround(ms * 1e6));
}

struct OpShare {
  OpClass op;
  double time, flops_per_ns, bytes_per_ns;
  bool memory_bound;
};
// Of the time of one pass.
constexpr OpShare kShares[] = {{OpClass::kGemm, 0.70, 80, 2, false},
                               {OpClass::kAttention, 0.10, 40, 3, false},
                               {OpClass::kNorm, 0.08, 3, 15, true},
                               {OpClass::kPointwise, 0.07, 2, 15, true},
                               {OpClass::kEmbeddingLoss, 0.05, 5, 15, true}};

class Simulation {
 public:
  explicit Simulation(const SyntheticJob& job) : job_(job), random_(job.seed), now_(size(), 0) {
    run_.ranks.resize(size());
    run_.events.resize(size());
    for (std::size_t r = 0; r < size(); ++r) {
      bias_.push_back(1 + job.rank_bias * normal_(random_));
      sequences_.push_back({});
    }
  }

  SyntheticRun run() {
    for (int s = 0; s < job_.steps; ++s) step(s);
    run_.mean_step_ms = *std::max_element(now_.begin(), now_.end()) / job_.steps;
    return std::move(run_);
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(job_.dp * job_.tp); }

  double noisy(double ms, std::size_t rank) {
    return std::max(0.2 * ms, ms * bias_[rank] * drift_ * (1 + job_.noise * heavy_(random_)));
  }
  bool affected(const PlantedFault& f, std::size_t rank) const {
    const int who = f.hopping ? victim_of_step_ : f.rank;
    return step_ >= f.from && step_ % f.every == 0 && who == static_cast<int>(rank);
  }
  double planted(Kind kind, std::size_t rank) const {
    double sum = 0;
    for (const PlantedFault& f : job_.faults)
      if (f.kind == kind && affected(f, rank)) sum += f.amount;
    return sum;
  }

  void spend(std::size_t rank, TimeClass c, double ms, bool on_cpu = true) {
    StepRecord& row = rows_[rank];
    row.class_ns[static_cast<std::size_t>(c)] += ns(ms);
    if (on_cpu) row.cpu_ns += ns(ms);
    now_[rank] += ms;
  }
  void phase(std::size_t rank, int what, double begin) {
    LedgerEvent e;
    e.step = step_;
    e.begin_ns = ns(begin);
    e.end_ns = ns(now_[rank]);
    e.what = static_cast<std::uint8_t>(what);
    run_.events[rank].push_back(e);
  }

  // A piece of forward or backward: operators, their FLOPs, gaps of the host between them.
  void compute(std::size_t rank, TimeClass c, double ms) {
    const double begin = now_[rank], work = 1 + planted(Kind::kMoreWork, rank);
    const double clock = planted(Kind::kSlowClock, rank), hog = planted(Kind::kMemoryHog, rank);
    double total = 0;
    for (const OpShare& share : kShares) {
      const double ideal = ms * share.time * work;
      const double took = noisy(ideal, rank) * (1 + clock) * (1 + hog * (share.memory_bound ? 3 : 0.2));
      OpTotals& op = rows_[rank].ops[static_cast<std::size_t>(share.op)];
      op.ns += ns(took);
      op.flops += ideal * 1e6 * share.flops_per_ns;
      op.bytes += ideal * 1e6 * share.bytes_per_ns;
      total += took;
    }
    spend(rank, c, total);
    const double delay = planted(Kind::kContention, rank) * ms / job_.compute_ms;
    rows_[rank].run_delay_ns += ns(delay);
    spend(rank, c, delay, false);
    spend(rank, TimeClass::kHostGap, noisy(job_.host_ms * ms / job_.compute_ms, rank));
    phase(rank, c == TimeClass::kForward ? 2 : 3, begin);
  }

  void collective(CommAxis axis, double transfer) {
    const TimeClass wait = static_cast<TimeClass>(static_cast<int>(TimeClass::kTpWait) + 2 * static_cast<int>(axis));
    const TimeClass move = static_cast<TimeClass>(static_cast<int>(wait) + 1);
    std::vector<bool> done(size(), false);
    for (std::size_t first = 0; first < size(); ++first) {
      if (done[first]) continue;
      std::vector<std::size_t> group;
      for (std::size_t r = first; r < size(); ++r) {
        const auto tp = static_cast<std::size_t>(job_.tp);
        if (axis == CommAxis::kWorld || (axis == CommAxis::kTp ? r / tp == first / tp : r % tp == first % tp))
          group.push_back(r);
      }
      const std::size_t last = *std::max_element(group.begin(), group.end(),
                                                 [&](std::size_t a, std::size_t b) { return now_[a] < now_[b]; });
      const double arrival = now_[last], took = transfer * (1 + 0.05 * std::abs(normal_(random_)));
      for (const std::size_t r : group) {
        done[r] = true;
        const double waited = arrival - now_[r], begin = now_[r];
        spend(r, wait, waited);
        spend(r, move, took);
        waited_for_[r][static_cast<std::size_t>(axis)][last] += waited;
        AxisTotals& totals = rows_[r].axes[static_cast<std::size_t>(axis)];
        ++totals.calls;
        totals.bytes += 1 << 20;
        totals.in_flight_ns += ns(took);
        LedgerEvent e;
        e.step = step_;
        e.kind = LedgerEvent::Kind::kCollective;
        e.begin_ns = ns(begin);
        e.end_ns = ns(now_[r]);
        e.last_arrival_ns = ns(arrival);
        e.bytes = 1 << 20;
        e.axis = static_cast<std::uint8_t>(axis);
        e.last_rank = static_cast<int>(last);
        e.sequence = ++sequences_[r][static_cast<std::size_t>(axis)];
        run_.events[r].push_back(e);
      }
    }
  }

  void pass(TimeClass c, double ms) {
    const int pieces = job_.tp > 1 ? job_.layers : 1;
    for (int i = 0; i < pieces; ++i) {
      for (std::size_t r = 0; r < size(); ++r) compute(r, c, ms / pieces);
      if (job_.tp > 1) collective(CommAxis::kTp, 0.3);
    }
  }

  void step(int number) {
    step_ = number;
    drift_ = 1 + job_.drift * number;
    victim_of_step_ = static_cast<int>(random_() % size());
    rows_.assign(size(), {});
    waited_for_.assign(size(), std::vector<std::vector<double>>(kCommAxes, std::vector<double>(size(), 0)));
    const std::vector<double> begin = now_;
    for (std::size_t r = 0; r < size(); ++r) {
      const double from = now_[r];
      spend(r, TimeClass::kDataWait, noisy(job_.data_ms, r) + planted(Kind::kData, r), false);
      phase(r, 0, from);
      spend(r, TimeClass::kCopy, noisy(job_.copy_ms, r) + planted(Kind::kCopy, r));
      spend(r, TimeClass::kHostGap, planted(Kind::kHostSleep, r), false);
      spend(r, TimeClass::kForward, planted(Kind::kStop, r), false);
      if (uniform_(random_) < job_.spikes)
        spend(r, TimeClass::kHostGap, job_.compute_ms * (0.1 + 0.2 * uniform_(random_)), false);
    }
    pass(TimeClass::kForward, job_.compute_ms * 0.32);
    pass(TimeClass::kBackward, job_.compute_ms * 0.62);
    if (job_.dp > 1)
      for (int bucket = 0; bucket < 2; ++bucket) collective(CommAxis::kDp, job_.transfer_ms);
    collective(CommAxis::kWorld, 0.05);
    for (std::size_t r = 0; r < size(); ++r) {
      const double hog = planted(Kind::kMemoryHog, r), clock = planted(Kind::kSlowClock, r);
      const double ideal = job_.compute_ms * 0.06, took = noisy(ideal, r) * (1 + clock) * (1 + 3 * hog);
      const double from = now_[r];
      spend(r, TimeClass::kOptimizer, took);
      rows_[r].ops[static_cast<std::size_t>(OpClass::kOptimizer)] = {ns(took), ideal * 1e6, ideal * 15e6};
      phase(r, 5, from);
      spend(r, TimeClass::kCheckpoint, planted(Kind::kCheckpoint, r), false);
    }
    for (std::size_t r = 0; r < size(); ++r) finish(r, begin[r]);
  }

  void finish(std::size_t r, double begin) {
    StepRecord& row = rows_[r];
    row.step = step_;
    row.begin_ns = ns(begin);
    row.wall_ns = ns(now_[r]) - ns(begin);
    const std::int64_t delay = ns(crowd_(random_));  // inside the noise of what it ran
    row.run_delay_ns += delay;
    row.cpu_ns -= delay;
    row.own_tokens = static_cast<std::int64_t>(4096 * (1 + planted(Kind::kMoreWork, r)));
    row.own_length_squares = static_cast<double>(row.own_tokens) * 512;
    row.tokens = row.own_tokens * job_.dp;
    for (std::size_t a = 0; a < kCommAxes; ++a) {
      const auto& waited = waited_for_[r][a];
      const auto worst = std::max_element(waited.begin(), waited.end());
      if (*worst <= 0) continue;
      row.axes[a].culprit = static_cast<std::int32_t>(worst - waited.begin());
      row.axes[a].culprit_ns = ns(*worst);
    }
    if (!job_.counters) {
      row.ops = {};
      row.own_tokens = row.cpu_ns = row.run_delay_ns = 0;
    }
    run_.ranks[r].push_back(row);
  }

  SyntheticJob job_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::student_t_distribution<double> heavy_{4};
  std::uniform_real_distribution<double> uniform_;
  std::exponential_distribution<double> crowd_{2};  // half a millisecond without a core per step
  std::vector<double> now_, bias_;                  // now: milliseconds since the job began
  std::vector<std::array<std::uint64_t, kCommAxes>> sequences_;
  std::vector<StepRecord> rows_;
  std::vector<std::vector<std::vector<double>>> waited_for_;  // [rank][axis][culprit]
  int step_ = 0, victim_of_step_ = 0;
  double drift_ = 1;
  SyntheticRun run_;
};

}  // namespace

SyntheticRun simulate(const SyntheticJob& job) {
  return Simulation(job).run();
}

Window SyntheticRun::window(const SyntheticJob& job, std::size_t from, std::size_t count) const {
  Window w{.dp = job.dp, .tp = job.tp, .ranks = {}};
  for (const auto& rows : ranks)
    w.ranks.push_back(std::span(rows).subspan(from, std::min(count, rows.size() - from)));
  return w;
}

}  // namespace drivetrain
