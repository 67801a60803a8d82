// How a failure leaves a process: one critical line, a note for the launcher, the exit code of its kind.
#pragma once
#include <functional>
#include <string>

#include "runtime/comm/communicator.h"

namespace drivetrain {

// What this rank is doing, in words, for the critical line ("load model", "step 12"). The owner keeps it up to date.
struct RankPhase {
  std::string name = "start";
};

// For use in a catch block: logs the exception that is being handled and returns its exit code; 70 when it is not an
// Error. Under `drivetrain launch` the rank also leaves ranks/rank-00000.failure, by which launch names the cause. An
// Error(kStopped) is no failure: one line at info and its code.
int report_current_exception(const std::string& phase);

// Ends this rank of a job with the code, and the job with it; who lost a peer waits a little for the peer's own end.
[[noreturn]] void leave_failed(int code);

// Runs the body of a rank. Whatever it throws is reported as above; then the peers are woken with the reason and this
// process ends with the code (leave_failed): it does not return in that case.
int run_rank(Communicator& world, const RankPhase& phase, const std::function<int()>& body);

}  // namespace drivetrain
