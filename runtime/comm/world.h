// Opens the world communicator of this process. The only entry to the transports for the rest of the product.
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"

namespace drivetrain {

enum class Transport { kAuto, kShm, kMpi, kHost };

struct CommOptions {
  Transport transport = Transport::kAuto;
  std::chrono::seconds timeout{300};  // per collective
};

// Where this process stands in the job, read from the environment (Open MPI, Slurm/PMIx); {0, 1, 0, 1} alone.
struct ProcessPlace {
  int world_rank = 0, world_size = 1, local_rank = 0, local_size = 1;
};
ProcessPlace process_place();

// Alone: "self", without MPI. Under mpirun or srun: MPI is initialised; ranks of one host talk through shared memory.
// Throws kComm when ranks disagree or MPI cannot start.
std::unique_ptr<Communicator> open_world(const CommOptions& options);

}  // namespace drivetrain
