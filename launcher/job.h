// What `launch` and `comm bench` share: the options that say where ranks run, and running a planned job to its end.
#pragma once
#include <chrono>
#include <string>

#include "launcher/attempt.h"
#include "launcher/launch_plan.h"
#include "launcher/options.h"
#include "launcher/supervise.h"

namespace drivetrain {

// --host, --hostfile, --env, --oversubscribe, --interface, --wait-hosts, --mpirun.
void add_host_options(OptionList& options);

// Ranks, hosts, interface and environment from those options and from -n ("ranks"); program, rank folder and tensor ranks
// are the caller's. Throws kUsage.
LaunchRequest host_request(const OptionValues& values, const MachineFacts& facts);

// The value of an option in seconds. Throws kUsage unless 0 to 1,000,000.
std::chrono::milliseconds duration_of(const OptionValues& values, const std::string& option);

// Waits for the hosts' names unless the only host is this machine.
void wait_for_hosts(const LaunchRequest& request, const OptionValues& values);

// Supervises the job, writes result.json, shows the last lines of a failed rank; returns the job's exit code.
int run_job(const LaunchPlan& plan, const Attempt& attempt, const SuperviseOptions& options);

}  // namespace drivetrain
