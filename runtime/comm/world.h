// Opens the world communicator of this process. The only entry to the transports for the rest of the product.
//
// Ending a job. Cleanly: destroy everything that came from the world; the last to go calls MPI_Finalize, which waits
// for all ranks. After an error (an exception left a collective, abort() was called, or the world is destroyed while
// an exception is on its way) nothing waits for peers any more: MPI_Finalize is left out, and main() must end the
// process with abort_world(code), so that the launcher stops the other ranks and reports the code.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"

namespace drivetrain {

// kAuto and kHost: shared memory inside each host, MPI across hosts. kShm: the same, refusing more than one host.
// kMpi: MPI for everything.
enum class Transport { kAuto, kShm, kMpi, kHost };

// Whether collectives go on in the background, on a thread per communicator that starts with its first large call.
// kAuto: only where the cores of this host suffice for the compute threads of its ranks and one more per rank; a thread
// that shares a core with computing makes both slower.
enum class ProgressThread { kAuto, kOn, kOff };

struct CommOptions {
  Transport transport = Transport::kAuto;
  std::chrono::seconds timeout{300};  // per collective
  // Compare operation, count, type, root and sequence number of every call across its ranks, and raise on all of them
  // when they differ. Off: ranks that disagree compute garbage or run into the deadline.
  bool check = true;
  // Joining the job (MPI_Init and the steps after it) cannot be interrupted: when it takes longer, last_words, if any,
  // is told the error, else stderr, and the process ends with the error's exit code.
  std::chrono::seconds init_timeout{300};
  std::function<void(const Error&)> last_words;
  // Where the first rank of a host that fails leaves the flight recorders of all ranks there, as recorder-<host>.bin,
  // for `drivetrain comm recorder`. Empty: nowhere.
  std::string recorder_folder;
  ProgressThread progress = ProgressThread::kAuto;
  int compute_threads = 1;  // of this rank, for ProgressThread::kAuto
};

// Where this process stands in the job, read from the environment (Open MPI, Slurm/PMIx); {0, 1, 0, 1} alone.
struct ProcessPlace {
  int world_rank = 0, world_size = 1, local_rank = 0, local_size = 1;
};
ProcessPlace process_place();

// Alone: "self", without MPI. Under mpirun or srun: MPI is initialised; ranks of one host talk through shared memory, hosts
// through MPI.
// Throws kComm when ranks disagree or MPI cannot start, kPreflight when the host has too little shared memory.
// Once per process.
std::unique_ptr<Communicator> open_world(const CommOptions& options);

// Ends this process at once with the code: MPI_Abort where MPI runs, otherwise an exit without destructors. Callable
// from any thread; for main() after an error, see above.
[[noreturn]] void abort_world(int code);

}  // namespace drivetrain
