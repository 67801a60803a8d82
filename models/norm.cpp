#include "models/norm.h"

namespace drivetrain {
namespace {

Parameter norm_parameter(const NormSpec& spec, const char* suffix, const std::string& hf_name, Parameter::Init init) {
  Parameter p;
  p.name = spec.name + suffix;
  p.blocks = {Block{spec.dim, hf_name, 0, spec.dim, false}};
  p.vector = true;
  p.tp_partial = spec.partial_grads;
  p.decay = false;
  p.init = init;
  return p;
}

}  // namespace

Norm::Norm(const NormSpec& spec, Ops& ops)
    : ops_(ops),
      kind_(spec.kind),
      eps_(spec.eps),
      weight_(norm_parameter(spec, ".weight", spec.hf_weight, Parameter::Init::kOnes)),
      bias_(norm_parameter(spec, ".bias", spec.hf_bias, Parameter::Init::kZeros)) {}

void Norm::register_backward(ParamStore& store) {
  if (kind_ == NormSpec::Kind::kLayer) store.add(bias_);
  store.add(weight_);
}

NormStats Norm::take_stats(Arena& arena, std::int64_t rows) const {
  NormStats s;
  s.inv_std = arena.take(DType::kF32, {rows});
  if (kind_ == NormSpec::Kind::kLayer) s.mean = arena.take(DType::kF32, {rows});
  return s;
}

void Norm::forward(Tensor y, NormStats& stats, Tensor sum, Tensor x, Tensor delta) const {
  if (kind_ == NormSpec::Kind::kRms)
    ops_.rms_norm(y, stats.inv_std, sum, x, delta, weight_.value, eps_);
  else
    ops_.layer_norm(y, stats.mean, stats.inv_std, sum, x, delta, weight_.value, bias_.value, eps_);
}

void Norm::backward(Tensor dx, Tensor dy, Tensor x, const NormStats& stats, StepContext& ctx) {
  const Write write = ctx.grads.write_mode(weight_);
  if (kind_ == NormSpec::Kind::kRms) {
    ops_.rms_norm_grad(dx, weight_.grad, dy, x, weight_.value, stats.inv_std, write);
  } else {
    ops_.layer_norm_grad(dx, weight_.grad, bias_.grad, dy, x, weight_.value, stats.mean, stats.inv_std, write);
    ctx.grads.write_mode(bias_);
    ctx.grads.ready(bias_);
  }
  ctx.grads.ready(weight_);
}

}  // namespace drivetrain
