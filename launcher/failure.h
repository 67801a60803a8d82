// How a failure leaves a process: one critical line, a note for the launcher, the exit code of its kind. Does not exit.
#pragma once
#include <functional>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/world.h"

namespace drivetrain {

// What this rank is doing, in words, for the critical line ("load model", "step 12"). The owner keeps it up to date.
struct RankPhase {
  std::string name = "start";
};

// For use in a catch block: logs the exception that is being handled and returns its exit code; 70 when it is not an
// Error. Under `drivetrain launch` the rank also leaves ranks/rank-00000.failure, by which launch names the cause.
int report_current_exception(const std::string& phase, const ProcessPlace& place);

// Runs the body of a rank. Whatever it throws is reported as above and wakes the peers through world.abort().
int run_rank(Communicator& world, const RankPhase& phase, const std::function<int()>& body);

}  // namespace drivetrain
