// Turns SIGTERM, SIGUSR1 and the first SIGINT into a flag that the step loop reads: save, then stop. Handles nothing else.
#pragma once

namespace drivetrain {

// Installs the handlers while it lives and puts the old ones back after. One at a time in a process; throws kLogic
// for a second one.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Since construction. Cheap; may be asked every step.
  bool requested() const;
};

}  // namespace drivetrain
