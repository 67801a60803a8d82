// The figures of one measurement: what the ranks left, and what is made of it. Pure; text and JSON are
// views of it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launcher/bench/feed.h"
#include "runtime/diagnosis/verdict.h"
#include "runtime/diagnosis/waterfall.h"
#include "runtime/flops.h"
#include "runtime/ledger/ledger_file.h"

namespace drivetrain {

// As measured; complete on rank 0.
struct StepBench {
  std::string config, model, data, transport;
  std::int64_t warmup = 0;
  FlopsShape shape;
  Recompute recompute = Recompute::kNone;
  FlopsConvention convention = FlopsConvention::kCausal;
  RunFacts facts;
  std::vector<RankLedger> ledgers;  // by world rank, the timed steps
  std::string peak_source;
  double copy_bytes_per_s = 0;             // memory bandwidth of a rank while all ranks copy, read and written
  std::optional<double> feed_windows;      // a second, of the slowest rank
  double load_before = 0, load_after = 0;  // load average of rank 0's host
};

struct StepSpread {  // of the timed steps
  double median = 0, p10 = 0, p90 = 0, mean = 0;
};

struct StepBenchReport {
  struct Convention {
    FlopsConvention convention;
    double flops_per_token = 0;
    std::optional<double> mfu;  // 0..1
  };
  struct Rank {
    int rank = 0;
    std::string host;
    double own_ms = 0, waits_ms = 0, transfer_ms = 0;  // per step
    double peak_flops = 0;                             // 0: unknown
  };

  std::size_t steps = 0;
  std::int64_t tokens_per_step = 0;
  StepSpread step_ms;                // of a step: mean of the ranks
  StepSpread tokens_per_s;           // of the job; `mean` is all tokens over all time, which MFU and waterfall go by
  std::optional<double> peak_flops;  // of all ranks together
  std::vector<Convention> conventions;  // all that are known
  Convention chosen, causal, full, hardware;
  Waterfall waterfall;                 // under the chosen convention
  std::vector<RooflineRow> operators;  // empty without a peak
  Diagnosis diagnosis;
  std::vector<Change> changes;
  std::vector<Rank> ranks;
  bool ranks_differ = false;
  std::optional<FeedVerdict> feed;
};

// Throws kData when ranks are missing or hold different steps.
StepBenchReport report_of(const StepBench& bench);

}  // namespace drivetrain
