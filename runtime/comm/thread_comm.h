// Ranks as threads of one process, for tests of everything above Communicator.
#pragma once
#include <functional>
#include <memory>

#include "runtime/comm/communicator.h"

namespace drivetrain {

// Runs body(world) on `ranks` threads, one communicator each; returns when all are done. The first exception thrown
// by any rank aborts the group (peers blocked in a collective wake with kComm) and is rethrown here.
void run_thread_ranks(int ranks, const std::function<void(Communicator& world)>& body);

}  // namespace drivetrain
