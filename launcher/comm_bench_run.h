// One rank's part of `comm bench`: opens the communicator asked for, measures, and lets rank 0 speak.
#pragma once
#include "launcher/comm_bench_report.h"
#include "launcher/comm_bench_request.h"

namespace drivetrain {

// Inside a job of mpirun or srun. Returns the exit code; a failure does not return, it ends the job.
int run_bench_process(const BenchRequest& request, const MpiFacts& mpi);

// All ranks as threads of this process.
int run_bench_threads(const BenchRequest& request, int ranks);

}  // namespace drivetrain
