#include "launcher/plan_text.h"

#include <array>
#include <cstdio>

#include "runtime/flops.h"

namespace drivetrain {
namespace {

std::string format(const char* pattern, auto... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

long long number(std::int64_t n) {
  return n;
}

std::string row(const char* name, std::size_t bytes, const char* what) {
  return format("  %-20s %10s  %16zu bytes   %s\n", name, bytes_text(bytes).c_str(), bytes, what);
}

}  // namespace

std::string bytes_text(std::size_t bytes) {
  const auto b = static_cast<double>(bytes);
  if (b >= 1e9) return format("%.2f GB", b / 1e9);
  if (b >= 1e6) return format("%.1f MB", b / 1e6);
  return format("%.1f KB", b / 1e3);
}

bool fits(const MemoryPlan& plan, const HostMemory& memory, int ranks_per_host) {
  return plan.total_bytes() * static_cast<std::size_t>(ranks_per_host) <= memory.available_bytes;
}

std::string memory_table(const MemoryPlan& plan) {
  return row("weights", plan.weight_bytes, "compute dtype, whole on each data rank") +
         row("gradients", plan.gradient_bytes, "f32") +
         row("master + moments", plan.optimizer_bytes, "f32, this rank's share") +
         row("activations", plan.activation_bytes, "the arena") +
         row("scratch", plan.scratch_bytes, "packed weights, batches, rotary tables, wires") +
         row("total per rank", plan.total_bytes(), "");
}

std::string plan_text(const RunSetup& setup, const MemoryPlan& plan, const HostMemory& memory, int ranks_per_host) {
  const ModelConfig& m = setup.model;
  const FlopsShape shape = flops_shape(m, setup.seq_len, plan.parameters);
  const std::int64_t tokens = setup.global_batch * setup.seq_len;
  std::string out;
  out += format("model        %s: %lld layers, dim %lld, %lld heads (%lld kv) of %lld, ffn %lld, vocab %lld%s\n",
                family_name(m.family), number(m.layers), number(m.dim), number(m.heads), number(m.kv_heads),
                number(m.head_dim), number(m.ffn), number(m.vocab), m.tied ? ", tied" : "");
  out += format("parameters   %lld\n", number(plan.parameters));
  out += format(
      "layout       %d ranks: dp %d x tp %d, %lld sequences of %lld tokens a step (%lld micro-batches a rank)\n",
      setup.mesh.dp * setup.mesh.tp, setup.mesh.dp, setup.mesh.tp, number(setup.global_batch), number(setup.seq_len),
      number(setup.global_batch / (setup.micro_batch * setup.mesh.dp)));
  const double causal = flops_per_token(shape, FlopsConvention::kCausal);
  out += format("FLOPs/token  %.0f (matrix products exact, causal attention); %.0f with the whole attention square\n",
                causal, flops_per_token(shape, FlopsConvention::kFullAttention));
  out += format("FLOPs/step   %.4g for %lld tokens\n", causal * static_cast<double>(tokens), number(tokens));
  out += "memory of one rank\n" + memory_table(plan);
  const std::size_t host = plan.total_bytes() * static_cast<std::size_t>(ranks_per_host);
  const bool ok = fits(plan, memory, ranks_per_host);
  out += format("%d rank%s on a host need %s; %s is %s: %s\n", ranks_per_host, ranks_per_host == 1 ? "" : "s",
                bytes_text(host).c_str(), memory.source, bytes_text(memory.available_bytes).c_str(),
                ok ? "fits" : "does NOT fit");
  if (!ok)
    out += "to make it fit: memory.recompute: full, a smaller batch.micro or data.seq_len, more ranks, parallel.tp\n";
  return out;
}

}  // namespace drivetrain
