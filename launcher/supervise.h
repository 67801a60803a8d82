// Runs a planned job and watches it: passes stop signals on, bounds every wait, leaves no process behind, and says which
// rank failed first. Everything remote is mpirun's business.
#pragma once
#include <chrono>

#include "launcher/attempt.h"
#include "launcher/cause.h"
#include "launcher/launch_plan.h"

namespace drivetrain {

struct SuperviseOptions {
  std::chrono::milliseconds grace{120000};        // for a checkpoint after a stop signal
  std::chrono::milliseconds after_failure{7000};  // for mpirun to end the job when a rank has failed
  std::chrono::milliseconds after_term{4000};     // from SIGTERM to SIGKILL
};

// Blocks SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD and SIGPIPE of this thread while it runs. A stop signal (the first
// four) is sent on as SIGUSR1, again every two seconds; after the grace, or at a second SIGINT or SIGTERM, the job is
// ended. Rank 0's output goes to our own and to its files. Throws kLaunch when mpirun itself cannot be started.
Outcome supervise(const LaunchPlan& plan, const Attempt& attempt, const SuperviseOptions& options);

}  // namespace drivetrain
