// The CPU as a device: pooled host memory, lanes that run inline, and the CPU op table.
#pragma once
#include <memory>

#include "kernels/device.h"

namespace drivetrain {

// `threads` loops and products run on that many threads; 0 = as many as this process may use (its affinity mask).
// Ops are called from one thread at a time; several devices may work side by side. Throws kConfig for threads < 0.
std::unique_ptr<Device> make_cpu_device(int threads);

}  // namespace drivetrain
