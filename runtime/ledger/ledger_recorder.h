// What a rank keeps of each finished step: completes the record with what the host did and with the rank's own work,
// writes it and the step's events, and knows what all of that costs.
#pragma once
#include <filesystem>
#include <string>

#include "runtime/ledger/event_file.h"
#include "runtime/ledger/host_probe.h"
#include "runtime/ledger/ledger_cost.h"
#include "runtime/ledger/ledger_file.h"
#include "runtime/ledger/own_work.h"
#include "runtime/ledger/step_ledger.h"

namespace drivetrain {

class LedgerRecorder {
 public:
  // Continues or creates rank-NNNNN.bin and events-NNNNN.bin in `folder`, which must exist. On the thread that trains.
  LedgerRecorder(const std::filesystem::path& folder, const LedgerInfo& info);

  // Training goes on after `step`: later records go, host counters start now.
  void begin_after(std::int64_t step);
  // The window of the step that runs.
  void see(const StepBatch& window, std::int64_t seq);
  // The step that `ledger` ended last; returns the record as written.
  StepRecord add(StepRecord record, const StepLedger& ledger);

  // "every step's time is in a class but for 0.01 %; keeping the ledger cost 0.04 % of it, ..." over the steps added.
  std::string summary() const;

 private:
  LedgerFile records_;
  EventFile events_;
  HostProbe probe_;
  LedgerCost cost_;
  OwnWork own_;
  std::int64_t seeing_ns_ = 0, adding_ns_ = 0;  // of the latest call
  std::int64_t steps_ = 0;
  double wall_ns_ = 0, residual_ns_ = 0, ledger_ns_ = 0;
};

}  // namespace drivetrain
