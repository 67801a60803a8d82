#include "tests/models/harness.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "kernels/cpu/cpu_device.h"
#include "kernels/philox.h"
#include "models/init.h"
#include "runtime/comm/progress_comm.h"
#include "runtime/comm/thread_comm.h"
#include "runtime/optim/adamw.h"

namespace drivetrain::testing {
namespace {

struct HostSequences {
  std::vector<std::int32_t> ids, targets, positions, doc_starts;
  std::vector<std::int64_t> row_keys;
  std::int64_t target_count = 0;
};

std::uint32_t draw(const RunSpec& spec, std::int64_t sample, std::int64_t t, std::uint32_t what) {
  return philox({static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(sample), what, 0},
                philox_key(spec.seed))[0];
}

HostSequences sequences(const RunSpec& spec, std::int64_t first_sample) {
  HostSequences out;
  const auto vocab = static_cast<std::uint32_t>(spec.config.vocab);
  const std::int64_t doc = (spec.seq + spec.documents - 1) / spec.documents;
  for (std::int64_t i = 0; i < spec.micro; ++i)
    for (std::int64_t t = 0; t < spec.seq; ++t) {
      const std::int64_t sample = first_sample + i, start = t / doc * doc;
      const bool last = t + 1 == start + doc || draw(spec, sample, t, 1) < spec.ignored * 0x1p32;
      out.ids.push_back(static_cast<std::int32_t>(draw(spec, sample, t, 0) % vocab));
      out.targets.push_back(last ? Ops::kIgnore : static_cast<std::int32_t>(draw(spec, sample, t + 1, 0) % vocab));
      out.target_count += last ? 0 : 1;
      out.positions.push_back(static_cast<std::int32_t>(t - start));
      out.doc_starts.push_back(static_cast<std::int32_t>(start));
      out.row_keys.push_back(sample * spec.seq + t);
    }
  return out;
}

Batch upload(Device& device, Arena& arena, const RunSpec& spec, const HostSequences& host) {
  const auto put = [&](DType dtype, std::span<const std::byte> bytes) {
    Tensor t = arena.take(dtype, {spec.micro, spec.seq});
    device.upload(t, bytes);
    return t;
  };
  return {put(DType::kI32, std::as_bytes(std::span(host.ids))),
          put(DType::kI32, std::as_bytes(std::span(host.targets))),
          put(DType::kI32, std::as_bytes(std::span(host.positions))),
          put(DType::kI32, std::as_bytes(std::span(host.doc_starts))),
          put(DType::kI64, std::as_bytes(std::span(host.row_keys)))};
}

void train_rank(const RunSpec& spec, Communicator& world, RunResult& result) {
  const auto device = make_cpu_device(1);
  Mesh mesh(world.split(0, world.rank()), {spec.dp, spec.tp});
  TransformerOptions options;
  options.config = spec.config;
  options.compute = spec.compute;
  options.recompute = spec.recompute;
  options.residual = spec.residual;
  options.positions = spec.seq;
  options.logits_chunk_bytes = spec.logits_chunk_bytes;
  Transformer model(*device, mesh, options);
  model.store().materialize(*device, mesh, {spec.compute, spec.shard, spec.bucket_bytes});
  init_parameters(model.store(), mesh, spec.seed);
  device->ops().weights_changed();
  GradReducer grads(model.store(), mesh, *device, DType::kF32);
  // Adam's first updates are lr * sign(g) however small g is: an eps above the rounding of the smallest gradients keeps
  // that rounding from being blown up to full size.
  AdamW optimizer(*device, model.store(), mesh, {.eps = 1e-5, .clip = 1.0});
  Arena arena(mesh.world().symmetric_buffer(*device, 32 << 20));
  Buffer loss_buffer = mesh.world().symmetric_buffer(*device, 4096);
  Tensor loss_sum(loss_buffer.data(), DType::kF64, {1});

  const std::int64_t per_micro = spec.micro * spec.dp, micros = spec.global / per_micro;
  for (int step = 0; step < spec.steps; ++step) {
    std::int64_t targets = 0;
    for (std::int64_t s = 0; s < spec.global; s += spec.micro)
      targets += sequences(spec, step * spec.global + s).target_count;
    device->ops().zero(loss_sum);
    grads.begin_step();
    for (std::int64_t m = 0; m < micros; ++m) {
      const auto scope = arena.scope();
      const auto host = sequences(spec, step * spec.global + m * per_micro + mesh.dp_rank() * spec.micro);
      grads.begin_micro(m + 1 == micros ? GradReducer::Micro::kLast : GradReducer::Micro::kEarlier);
      StepContext ctx{arena, grads, static_cast<float>(1.0 / static_cast<double>(targets)),
                      static_cast<std::uint64_t>(step) + 1};
      model.forward_backward(loss_sum, upload(*device, arena, spec, host), ctx);
    }
    grads.finish();
    mesh.dp().all_reduce(loss_sum, ReduceOp::kSum).wait();
    double loss = 0;
    device->download(std::as_writable_bytes(std::span(&loss, 1)), loss_sum);
    const StepResult r = optimizer.step(1e-2, 1.0);
    if (world.rank() == 0) {
      result.losses.push_back(loss / static_cast<double>(targets));
      result.norms.push_back(r.grad_norm);
    }
  }
  if (world.rank() == 0) {
    result.arena_peak_bytes = arena.peak_bytes();
    Tensor master = model.store().master();
    result.master.resize(static_cast<std::size_t>(master.count()));
    device->download(std::as_writable_bytes(std::span(result.master)), master);
  }
}

ModelConfig tiny(Family family) {
  ModelConfig c;
  c.family = family;
  c.layers = 2;
  c.dim = 32;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 8;
  c.ffn = 64;
  c.vocab = 97;
  c.positions = 64;
  return c;
}

}  // namespace

ModelConfig tiny_llama() {
  return tiny(Family::kLlama);
}

ModelConfig tiny_qwen2() {
  ModelConfig c = tiny(Family::kQwen2);
  c.qkv_bias = true;
  c.norm_eps = 1e-6;
  c.tied = true;
  return c;
}

ModelConfig tiny_gpt2() {
  ModelConfig c = tiny(Family::kGpt2);
  c.kv_heads = 4;
  c.ffn = 128;
  c.tied = true;
  c.qkv_bias = c.output_bias = c.mlp_bias = true;
  return c;
}

ModelConfig uneven_llama() {
  ModelConfig c = tiny(Family::kLlama);
  c.heads = 9;
  c.kv_heads = 3;
  c.head_dim = 4;
  c.ffn = 61;
  c.init_std = 0.1;
  c.tied = true;
  return c;
}

RunResult train(const RunSpec& spec) {
  RunResult result;
  run_thread_ranks(spec.dp * spec.tp, [&](Communicator& world) {
    if (!spec.progress) return train_rank(spec, world, result);
    ProgressCommunicator background(world.split(0, world.rank()), 0);
    train_rank(spec, background, result);
  });
  return result;
}

double relative_difference(const RunResult& a, const RunResult& b) {
  double worst = 0;
  const auto compare = [&](const std::vector<double>& x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, std::abs(x[i] - y.at(i)) / std::max(std::abs(x[i]), 1e-12));
  };
  compare(a.losses, b.losses);
  compare(a.norms, b.norms);
  return worst;
}

}  // namespace drivetrain::testing
