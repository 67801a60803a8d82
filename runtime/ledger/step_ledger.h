// Where the time of each step went on this rank: every nanosecond is charged to exactly one phase, the innermost open
// span; what no span covers is the residual. Constant memory; writes no files (see ledger_file.h).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace drivetrain {

enum class Phase : std::uint8_t {
  kDataWait,
  kForward,
  kBackward,
  kRecompute,
  kGradSync,
  kOptimizer,
  kCheckpoint,
  kEval,
  kOther
};
constexpr std::size_t kPhases = 9;
const char* name(Phase phase);  // "data_wait", "forward", ...

// One step of one rank. Times in nanoseconds.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t begin_ns = 0;  // steady clock
  std::int64_t wall_ns = 0;
  std::array<std::int64_t, kPhases> phase_ns{};
  std::int64_t tokens = 0;  // trained in this step, all ranks together
  std::int64_t residual_ns() const;
};

// Time of the steady clock; a test passes its own.
using LedgerClock = std::int64_t (*)();
std::int64_t steady_ns();

class StepLedger {
 public:
  explicit StepLedger(LedgerClock clock = steady_ns);

  // Opens a phase inside the current one; spans nest like scopes.
  void open(Phase phase);
  void close();
  // Ends the step and begins the next one at the same instant. Throws kLogic while a span is open.
  StepRecord end_step(std::int64_t step, std::int64_t tokens);
  // Forgets the running step, e.g. the time before training begins.
  void restart();

 private:
  static constexpr std::size_t kDepth = 8;
  void charge(std::int64_t now);

  LedgerClock clock_;
  StepRecord running_;
  std::int64_t mark_ = 0;  // up to here, time is charged
  std::array<Phase, kDepth> open_{};
  std::size_t depth_ = 0;
};

// A span as a scope. A null ledger measures nothing.
class LedgerSpan {
 public:
  LedgerSpan(StepLedger* ledger, Phase phase) : ledger_(ledger) {
    if (ledger_) ledger_->open(phase);
  }
  ~LedgerSpan() {
    if (ledger_) ledger_->close();
  }
  LedgerSpan(const LedgerSpan&) = delete;
  LedgerSpan& operator=(const LedgerSpan&) = delete;

 private:
  StepLedger* ledger_;
};

}  // namespace drivetrain
