// run_thread_ranks() with every option of the host transport, so that its paths can be tested inside one process.
#pragma once
#include <functional>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_world.h"

namespace drivetrain {

void run_host_threads(int ranks, const HostOptions& options, const std::function<void(Communicator& world)>& body);

}  // namespace drivetrain
