// Bytes of one rank by class, found by building and running the real objects on a PlanDevice: what is planned is what
// is allocated. No rank is started.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"
#include "launcher/run_setup.h"

namespace drivetrain {

struct MemoryPlan {
  std::size_t weight_bytes = 0;
  std::size_t gradient_bytes = 0;
  std::size_t optimizer_bytes = 0;   // FP32 master and both moments
  std::size_t activation_bytes = 0;  // the arena: activations and what ops take beside them
  std::size_t scratch_bytes = 0;     // batches, rotary tables, reduction wires, packed weights
  std::int64_t parameters = 0;       // of the whole model
  double step_gemm_flops = 0;        // of one micro-batch on this rank, recomputation included
  std::size_t total_bytes() const {
    return weight_bytes + gradient_bytes + optimizer_bytes + activation_bytes + scratch_bytes;
  }
};

// `like`: the op table of the device that will run, for its packed weights.
MemoryPlan plan_memory(const RunSetup& setup, const Ops& like);

// Bytes of the arena that evaluation of batches and generation of sequences up to the model's positions need.
std::size_t plan_inference_arena(const RunSetup& setup, const Ops& like);

struct HostMemory {
  std::size_t available_bytes = 0;
  const char* source = "";  // "MemAvailable", "cgroup limit", "memory.limit_gb"
};
// limit_gb > 0 wins; else the smaller of MemAvailable and the cgroup's limit.
HostMemory host_memory(double limit_gb);

}  // namespace drivetrain
