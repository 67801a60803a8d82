// How a run stands: still going, over, dead or stuck, from what its processes left in the run folder and from those of
// them that live on this machine. Reads no ledger rows.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace drivetrain {

struct RunEnd {
  enum class State {
    kFinished,
    kRunning,
    kHung,     // its processes live, but no step has ended for long
    kFailed,   // ended with an error
    kStopped,  // ended on request
    kKilled,   // launch and ranks are gone, and nobody said why
    kEnded     // over; started without launch, so nothing says how
  };
  State state = State::kEnded;
  double idle_s = -1;                // since the newest step ended; -1: unknown
  int exit_code = 0;                 // of launch
  std::string cause;                 // a sentence: who, where, what; empty when all is well
  std::vector<std::string> account;  // further sentences: what each rank said or did last
  bool broken() const { return state == State::kHung || state == State::kFailed || state == State::kKilled; }
};
const char* name(RunEnd::State state);  // "finished", "running", ...

// `step_ms`: of a usual step. `idle_s`: since the newest step ended, by the calendar; -1: unknown.
RunEnd run_end(const std::filesystem::path& run_folder, double step_ms, double idle_s);

}  // namespace drivetrain
