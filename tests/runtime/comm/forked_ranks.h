// Ranks as forked processes of a test, over POSIX shared memory and without MPI: for what only processes can do, such
// as being killed.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_world.h"

namespace drivetrain::test {

struct ForkedRank {
  bool killed = false;  // by a signal, also by this harness when the others were done
  bool passed = false;  // the body returned and no expectation failed
  std::string error;    // what() of the Error that left the body
  ErrorKind kind = ErrorKind::kLogic;
  double seconds = 0;  // until the body was left
};

// Runs body(world) in `ranks` processes. A rank that stops itself is killed after all others have ended.
std::vector<ForkedRank> run_forked_ranks(int ranks, const HostOptions& options,
                                         const std::function<void(Communicator& world)>& body);

}  // namespace drivetrain::test
