#include "runtime/ledger/ledger_recorder.h"

#include <cmath>
#include <cstdio>

namespace drivetrain {

LedgerRecorder::LedgerRecorder(const std::filesystem::path& folder, const LedgerInfo& info)
    : records_(ledger_path(folder, info.world_rank), info),
      events_(events_path(folder, info.world_rank), info),
      cost_(measure_ledger_cost()) {}

void LedgerRecorder::begin_after(std::int64_t step) {
  records_.keep_until(step);
  events_.keep_until(step);
  probe_.since_last();
}

void LedgerRecorder::see(const StepBatch& window, std::int64_t seq) {
  const std::int64_t begin_ns = steady_ns();
  own_ = own_work(window, seq);
  seeing_ns_ = steady_ns() - begin_ns;
}

StepRecord LedgerRecorder::add(StepRecord r, const StepLedger& ledger) {
  const std::int64_t begin_ns = steady_ns();
  const HostUse used = probe_.since_last();
  r.cpu_ns = used.cpu_ns;
  r.run_delay_ns = used.run_delay_ns;
  r.major_faults = used.major_faults;
  r.minor_faults = used.minor_faults;
  r.own_tokens = own_.tokens;
  r.own_length_squares = own_.length_squares;
  const StepLedger::Calls calls = ledger.calls();
  // What adding costs is known when the record is written already: the one before stands for it.
  r.ledger_ns =
      seeing_ns_ + adding_ns_ +
      std::llround(static_cast<double>(calls.phases) * cost_.phase_ns + static_cast<double>(calls.ops) * cost_.op_ns +
                   static_cast<double>(calls.collectives) * cost_.collective_ns);
  records_.append(r);
  events_.append(r, ledger.events(), ledger.events_dropped());
  ++steps_;
  wall_ns_ += static_cast<double>(r.wall_ns);
  residual_ns_ += static_cast<double>(r.residual_ns());
  ledger_ns_ += static_cast<double>(r.ledger_ns);
  adding_ns_ = steady_ns() - begin_ns;
  return r;
}

std::string LedgerRecorder::summary() const {
  if (steps_ == 0 || wall_ns_ <= 0) return "no step was kept";
  char text[160];
  std::snprintf(text, sizeof text,
                "%.3f %% of the steps' time is in no class; keeping the ledger cost %.3f %% of it, %.0f us a step",
                100 * residual_ns_ / wall_ns_, 100 * ledger_ns_ / wall_ns_,
                ledger_ns_ / static_cast<double>(steps_) * 1e-3);
  return text;
}

}  // namespace drivetrain
