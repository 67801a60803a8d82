// The world of a test program under mpirun, opened by the main() of drivetrain_mpi_test_main.
#pragma once
#include "runtime/comm/communicator.h"

namespace drivetrain::test {

// Every rank runs the same tests in the same order. A rank whose test fails ends the job.
Communicator& mpi_test_world();

}  // namespace drivetrain::test
