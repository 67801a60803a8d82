#include "launcher/run_setup.h"

#include <algorithm>

#include "kernels/error.h"

namespace drivetrain {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::kConfig, message);
}

DType compute_dtype(const std::string& word) {
  if (word == "fp32") return DType::kF32;
  return word == "fp16" ? DType::kF16 : DType::kBF16;
}

Recompute recompute(const std::string& word) {
  if (word == "full") return Recompute::kFull;
  return word == "selective" ? Recompute::kSelective : Recompute::kNone;
}

ModelConfig model_config(const Config& config) {
  ModelConfig model = config.model.path.empty() ? preset(config.model.preset) : read_hf_config(config.model.path);
  apply_overrides(model, config.model.override_);
  return model;
}

std::int64_t sequence_length(const Config& config, const ModelConfig& model) {
  const std::int64_t length = config.data.seq_len;
  if (length == 0) return std::min<std::int64_t>(model.positions, 1024);
  if (length > model.positions)
    refuse("data.seq_len = " + std::to_string(length) + " is longer than the model's " +
           std::to_string(model.positions) + " positions; lower data.seq_len");
  return length;
}

void check_sequence_parallel(const RunSetup& s) {
  const bool sharded = s.transformer.residual == TensorParallel::Residual::kSharded && s.mesh.tp > 1;
  if (sharded && s.micro_batch * s.seq_len % s.mesh.tp != 0)
    refuse("sequence parallelism deals batch.micro x data.seq_len = " + std::to_string(s.micro_batch * s.seq_len) +
           " tokens to parallel.tp = " + std::to_string(s.mesh.tp) +
           " ranks, which does not come out even; change data.seq_len or set parallel.sequence: off");
}

}  // namespace

RunSetup set_up_run(const Config& config, int ranks) {
  if (config.device != "cpu" && config.device != "auto")
    throw Error(ErrorKind::kDevice, "device: " + config.device +
                                        " is not in this build, which has the CPU backend only; set device: cpu");
  RunSetup s;
  s.model = model_config(config);
  check_for_ranks(config, ranks);
  s.mesh = {ranks / config.parallel.tp, config.parallel.tp};
  check_tensor_parallel(s.model, s.mesh.tp);
  s.seq_len = sequence_length(config, s.model);
  s.micro_batch = config.batch.micro;
  s.global_batch = config.batch.global > 0 ? config.batch.global : s.micro_batch * s.mesh.dp;
  const DType compute = compute_dtype(config.precision.compute);
  s.transformer.config = s.model;
  s.transformer.compute = compute;
  s.transformer.recompute = recompute(config.memory.recompute);
  s.transformer.residual =
      config.parallel.sequence == "off" ? TensorParallel::Residual::kReplicated : TensorParallel::Residual::kSharded;
  s.transformer.positions = s.seq_len;
  s.store = {compute, config.parallel.zero > 0 ? StoreOptions::Shard::kOptimizer : StoreOptions::Shard::kOff,
             static_cast<std::size_t>(config.parallel.bucket_mb * 1024 * 1024)};
  s.wire = config.precision.reduce == "bf16" ? DType::kBF16 : DType::kF32;
  s.optimizer = {config.optimizer.betas.at(0), config.optimizer.betas.at(1), config.optimizer.eps,
                 config.optimizer.weight_decay, config.optimizer.clip};
  check_sequence_parallel(s);
  return s;
}

LrSchedule lr_schedule(const Config& config, std::int64_t total_steps) {
  LrSchedule s;
  const std::string& kind = config.schedule.kind;
  s.kind = kind == "constant" ? LrSchedule::Kind::kConstant
           : kind == "linear" ? LrSchedule::Kind::kLinear
           : kind == "wsd"    ? LrSchedule::Kind::kWarmupStableDecay
                              : LrSchedule::Kind::kCosine;
  s.base = config.optimizer.lr;
  s.warmup = config.schedule.warmup;
  s.total = total_steps;
  s.min_ratio = config.schedule.min_ratio;
  s.decay_fraction = config.schedule.decay_fraction;
  return s;
}

FlopsShape flops_shape(const ModelConfig& m, std::int64_t seq_len, std::int64_t parameters) {
  FlopsShape s;
  s.layers = m.layers;
  s.dim = m.dim;
  s.heads = m.heads;
  s.kv_heads = m.kv_heads;
  s.head_dim = m.head_dim;
  s.ffn = m.ffn;
  s.gated = m.family != Family::kGpt2;
  s.vocab = m.vocab;
  s.tied = m.tied;
  s.position_rows = m.family == Family::kGpt2 ? m.positions : 0;
  s.parameters = parameters;
  s.seq = seq_len;
  return s;
}

const char* family_name(Family family) {
  return family == Family::kGpt2 ? "gpt2" : family == Family::kLlama ? "llama" : "qwen2";
}

}  // namespace drivetrain
