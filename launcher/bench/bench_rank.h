// One rank of a measurement: trains on the real path for a few steps, then rank 0 reports.
#pragma once
#include "launcher/bench/bench_options.h"

namespace drivetrain {

// Set by a bench of several jobs: rank 0 prints nothing and writes {"report": ..., "text": ...} to this file.
inline constexpr const char* kFiguresVariable = "DRIVETRAIN_BENCH_FIGURES";

// Collective over the ranks that mpirun or srun started. Returns the exit code.
int run_step_bench(const StepBenchOptions& options);

}  // namespace drivetrain
