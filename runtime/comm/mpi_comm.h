// The communicator over MPI: between hosts, and for control. Every rank exchanges with every other directly and all
// arithmetic is ours, so that results are those of the other transports, bit for bit. No MPI type here.
#pragma once
#include <memory>

#include "runtime/comm/agreeing_comm.h"
#include "runtime/comm/mpi_world.h"

namespace drivetrain {

// Over all ranks of the world's session. Collective.
std::unique_ptr<AgreeingCommunicator> make_mpi_communicator(std::shared_ptr<MpiWorld> world);

}  // namespace drivetrain
