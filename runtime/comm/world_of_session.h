// open_world() on a job session that already runs: the choice of transports alone.
#pragma once
#include <memory>

#include "runtime/comm/mpi_session.h"
#include "runtime/comm/world.h"

namespace drivetrain {

std::unique_ptr<Communicator> open_world_of(std::shared_ptr<MpiSession> session, const CommOptions& options);

}  // namespace drivetrain
