#include "launcher/memory_plan.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/plan_device.h"
#include "runtime/batch_buffer.h"
#include "runtime/comm/plan_comm.h"
#include "runtime/grad_reducer.h"

namespace drivetrain {
namespace {

// Larger than any machine: only its peak matters.
constexpr std::size_t kUnbounded = std::size_t{1} << 46;

HostBatch empty_batch(std::int64_t micro, std::int64_t seq) {
  const auto n = static_cast<std::size_t>(micro * seq);
  HostBatch b;
  b.ids.resize(n);
  b.targets.resize(n);
  b.positions.resize(n);
  b.doc_starts.resize(n);
  b.row_keys.resize(n);
  return b;
}

Mesh plan_mesh(MeshShape shape) {
  return Mesh(shape, make_plan_communicator(0, shape.dp * shape.tp), make_plan_communicator(0, shape.dp),
              make_plan_communicator(0, shape.tp));
}

std::size_t first_number(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with(key)) continue;
    std::istringstream words(line.substr(key.size()));
    std::size_t value = 0;
    if (words >> value) return value;
  }
  return 0;
}

}  // namespace

MemoryPlan plan_memory(const RunSetup& setup, const Ops& like) {
  const auto device = make_plan_device(&like);
  Mesh mesh = plan_mesh(setup.mesh);
  MemoryPlan plan;
  Transformer model(*device, mesh, setup.transformer);
  model.store().materialize(*device, mesh, setup.store);
  GradReducer grads(model.store(), mesh, *device, setup.wire);
  AdamW optimizer(*device, model.store(), mesh, setup.optimizer);
  BatchBuffer batches(*device, setup.micro_batch, setup.seq_len);
  plan.parameters = model.parameter_count();
  plan.weight_bytes = model.store().value_bytes();
  plan.gradient_bytes = model.store().grad_bytes();
  plan.optimizer_bytes = model.store().master_bytes() + optimizer.moment_bytes();
  plan.scratch_bytes = device->allocated_bytes() - plan.weight_bytes - plan.gradient_bytes - plan.optimizer_bytes;

  Arena arena(Buffer(*device, kUnbounded));
  Buffer loss(*device, sizeof(double));
  Tensor loss_sum(loss.data(), DType::kF64, {1});
  const Batch batch = batches.upload(empty_batch(setup.micro_batch, setup.seq_len));
  grads.begin_step();
  grads.begin_micro(GradReducer::Micro::kLast);
  StepContext ctx{arena, grads, 1.0f, 1};
  model.forward_backward(loss_sum, batch, ctx);
  plan.step_gemm_flops = device->work().gemm_flops;
  model.evaluate(loss_sum, batch, arena);
  plan.activation_bytes = arena.peak_bytes();
  plan.scratch_bytes += device->work().packed_bytes;
  return plan;
}

std::size_t plan_inference_arena(const RunSetup& setup, const Ops& like) {
  const auto device = make_plan_device(&like);
  Mesh mesh = plan_mesh(setup.mesh);
  Transformer model(*device, mesh, setup.transformer);
  model.store().materialize(*device, mesh, setup.store);
  BatchBuffer batches(*device, setup.micro_batch, setup.seq_len);
  Arena arena(Buffer(*device, kUnbounded));
  Buffer loss(*device, sizeof(double));
  const Batch batch = batches.upload(empty_batch(setup.micro_batch, setup.seq_len));
  model.evaluate(Tensor(loss.data(), DType::kF64, {1}), batch, arena);
  const std::vector<std::int32_t> longest(static_cast<std::size_t>(model.max_positions()), 0);
  model.logits(longest, nullptr, Model::Rows::kLast, arena);
  return arena.peak_bytes();
}

HostMemory host_memory(double limit_gb) {
  if (limit_gb > 0) return {static_cast<std::size_t>(limit_gb * 1e9), "memory.limit_gb"};
  HostMemory best{first_number("/proc/meminfo", "MemAvailable:") * 1024, "MemAvailable"};
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::size_t limit = first_number(file, "");
    if (limit > 0 && limit < best.available_bytes) best = {limit, "cgroup limit"};
  }
  return best;
}

}  // namespace drivetrain
