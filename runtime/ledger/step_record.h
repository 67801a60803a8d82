// One row of the step ledger: where one step's time went on one rank, what was computed and moved in it, and what the
// host did to the process meanwhile. Plain numbers of fixed size, written as they lie (ledger_file.h) and read by every
// report. Times in nanoseconds. Knows no files and no clocks.
//
// `ops` and `axes` count what ran in the compute phases (forward, backward, recompute, optimizer). Evaluation, checkpoint
// and data keep all of their time, collectives included, in their one class.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace drivetrain {

// What the step loop is doing; the model opens backward and recompute.
enum class Phase : std::uint8_t {
  kDataWait,
  kCopy,  // the batch to the device
  kForward,
  kBackward,
  kRecompute,
  kOptimizer,  // the exchange of the step's sums, clipping, update, gather of the weights
  kCheckpoint,
  kEval,
  kOther
};
constexpr std::size_t kPhases = 9;
const char* name(Phase phase);  // "data_wait", "forward", ...

// Every nanosecond of a step belongs to exactly one class. Waiting: this rank was in a collective before its last
// member was; transfer: after that. Host gap: inside a compute phase, but no operator and no collective ran.
enum class TimeClass : std::uint8_t {
  kDataWait,
  kCopy,
  kForward,
  kBackward,
  kRecompute,
  kOptimizer,
  kTpWait,
  kTpTransfer,
  kDpWait,
  kDpTransfer,
  kWorldWait,
  kWorldTransfer,
  kHostGap,
  kCheckpoint,
  kEval,
  kOther
};
constexpr std::size_t kTimeClasses = 16;
const char* name(TimeClass c);  // "data_wait", "forward", "tp_wait", ...

// Groups of operators that share a bound: what a roofline tells apart.
enum class OpClass : std::uint8_t { kGemm, kAttention, kNorm, kPointwise, kEmbeddingLoss, kOptimizer };
constexpr std::size_t kOpClasses = 6;
const char* name(OpClass c);  // "gemm", "attention", ...

// The groups that ranks meet in.
enum class CommAxis : std::uint8_t { kTp, kDp, kWorld };
constexpr std::size_t kCommAxes = 3;
const char* name(CommAxis a);  // "tp", "dp", "world"

struct OpTotals {
  std::int64_t ns = 0;
  double flops = 0, bytes = 0;  // arithmetic and least memory traffic of the calls
};

struct AxisTotals {
  std::int64_t bytes = 0;  // of the tensors, summed over calls
  std::int32_t calls = 0;
  std::int32_t culprit = -1;    // world rank that came last and cost this rank the most waiting; -1: none known
  std::int64_t culprit_ns = 0;  // of the axis' waiting, for the culprit alone; a lower bound beyond 8 culprits a step
  std::int64_t in_flight_ns = 0;  // last arrival to end, hidden behind compute or not
};

struct StepRecord {
  std::int64_t step = 0;
  std::int64_t begin_ns = 0;  // steady clock of this host
  std::int64_t wall_ns = 0;
  std::array<std::int64_t, kTimeClasses> class_ns{};
  std::array<OpTotals, kOpClasses> ops{};
  std::array<AxisTotals, kCommAxes> axes{};
  std::int64_t tokens = 0;        // trained in this step, all ranks together
  std::int64_t own_tokens = 0;    // of this rank's data, padding left out
  double own_length_squares = 0;  // sum over its documents of length^2: the work of attention
  std::int64_t cpu_ns = 0;        // this thread ran
  std::int64_t run_delay_ns = 0;  // this thread was ready to run, and others had the core
  std::int64_t major_faults = 0, minor_faults = 0;
  std::int64_t ledger_ns = 0;  // what keeping this record cost, estimated
  std::array<std::int64_t, 3> reserved{};

  std::int64_t at(TimeClass c) const { return class_ns[static_cast<std::size_t>(c)]; }
  const OpTotals& at(OpClass c) const { return ops[static_cast<std::size_t>(c)]; }
  const AxisTotals& at(CommAxis a) const { return axes[static_cast<std::size_t>(a)]; }
  std::int64_t residual_ns() const;  // wall minus all classes
};
static_assert(sizeof(StepRecord) == 480 && std::is_trivially_copyable_v<StepRecord>);

// A span of the step, for timelines: one of the trainer's phases or one collective.
struct LedgerEvent {
  enum class Kind : std::uint8_t { kPhase, kCollective };
  std::int64_t step = 0;
  std::int64_t begin_ns = 0, end_ns = 0;  // phase; for a collective: this rank's arrival and end
  std::int64_t last_arrival_ns = 0;       // collectives; 0: unknown
  std::int64_t bytes = 0;
  Kind kind = Kind::kPhase;
  std::uint8_t what = 0;  // Phase or CollectiveOp
  std::uint8_t axis = 0;  // CommAxis
  std::uint8_t reserved = 0;
  std::int32_t last_rank = -1;  // world rank that came last
  std::uint64_t sequence = 0;   // of the collective in its axis, counted by this rank; equal on all members
};
static_assert(sizeof(LedgerEvent) == 56 && std::is_trivially_copyable_v<LedgerEvent>);

}  // namespace drivetrain
