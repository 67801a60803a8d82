// Where the time of each step goes on this rank: every nanosecond is charged to exactly one class; what no phase covers is
// the residual. Constant memory, no files (ledger_recorder.h), no communication.
//
// Two seams. Phases are scopes of the host (LedgerSpan). Operators and collectives are *fed in* as finished intervals, so
// the ledger does not care who took the time: on the CPU, whose ops end when they return, LedgerOps and
// ObservedCommunicator read the clock around each call. A device whose lanes run behind the host records events instead,
// and replays a finished step, one step late, through the calls that take a time (open, op, collective, close,
// end_step), with the times of its own lane.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/comm/call_record.h"
#include "runtime/ledger/step_record.h"

namespace drivetrain {

// Time of the steady clock; a test passes its own.
using LedgerClock = std::int64_t (*)();
std::int64_t steady_ns();

// A collective that is over, as this rank saw it.
struct CollectiveSpan {
  CommAxis axis = CommAxis::kWorld;
  CollectiveOp op = CollectiveOp::kNone;
  std::int64_t begin_ns = 0, end_ns = 0;  // this rank did nothing else
  CollectiveTiming timing{};
  int last_rank = -1;          // world rank; -1: unknown
  std::uint64_t sequence = 0;  // in its axis, from 1; 0: not a collective (send, recv)
};

class StepLedger {
 public:
  static constexpr std::size_t kEvents = 16384;  // a step's; later ones of the step are counted only

  explicit StepLedger(LedgerClock clock = steady_ns);
  std::int64_t now() const { return clock_(); }

  // Opens a phase inside the current one; they nest like scopes.
  void open(Phase phase) { open(phase, clock_()); }
  void close() { close(clock_()); }
  // Ends the step and begins the next one at the same instant. Throws kLogic while a phase is open.
  StepRecord end_step(std::int64_t step, std::int64_t tokens) { return end_step(step, tokens, clock_()); }
  // Forgets the running step, e.g. the time before training begins.
  void restart();

  // Times never go back from one call to the next.
  void open(Phase phase, std::int64_t at_ns);
  void close(std::int64_t at_ns);
  StepRecord end_step(std::int64_t step, std::int64_t tokens, std::int64_t at_ns);
  // An operator ran. Between such intervals a compute phase is a host gap.
  void op(OpClass c, std::int64_t begin_ns, std::int64_t end_ns, double flops, double bytes);
  // This rank was blocked in a collective or in waiting for one: exposed communication. Until the last member arrived
  // it waited, then it transferred; a last arrival that is unknown (0) makes all of it transfer.
  void collective(const CollectiveSpan& span);

  // Of the step that ended last; valid until the next one ends.
  std::span<const LedgerEvent> events() const { return {ended_.data(), ended_count_}; }
  std::int64_t events_dropped() const { return ended_dropped_; }
  struct Calls {  // what was fed in, for estimating the ledger's own cost
    std::int64_t phases = 0, ops = 0, collectives = 0;
  };
  Calls calls() const { return ended_calls_; }

 private:
  static constexpr std::size_t kDepth = 8, kCulprits = 8;
  struct Open {
    Phase phase;
    std::int64_t begin_ns;
  };
  // Waiting by culprit in constant memory: Space-Saving (Metwally et al. 2005). A newcomer to a full table takes over
  // the smallest entry; what it inherits is not its own.
  struct Culprit {
    int world_rank = -1;
    std::int64_t ns = 0, inherited_ns = 0;
  };

  bool computing() const;
  void charge_until(std::int64_t at_ns);
  void add(TimeClass c, std::int64_t ns) { running_.class_ns[static_cast<std::size_t>(c)] += ns; }
  void blame(CommAxis axis, int world_rank, std::int64_t ns);
  void name_culprits();
  void note(const LedgerEvent& event);
  void begin(std::int64_t at_ns);

  LedgerClock clock_;
  StepRecord running_;
  std::int64_t mark_ = 0;  // up to here, time is charged
  std::array<Open, kDepth> open_{};
  std::size_t depth_ = 0;
  std::array<std::array<Culprit, kCulprits>, kCommAxes> culprits_{};
  Calls calls_, ended_calls_;
  std::vector<LedgerEvent> events_, ended_;  // kEvents each
  std::size_t count_ = 0, ended_count_ = 0;
  std::int64_t dropped_ = 0, ended_dropped_ = 0;
};

// A phase as a scope. A null ledger measures nothing.
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
