#include "models/linear.h"

#include <utility>

namespace drivetrain {

Linear::Linear(LinearSpec spec, Ops& ops, int tp_rank)
    : ops_(ops), has_bias_(!spec.bias.empty()), adds_bias_(spec.split != Split::kCols || tp_rank == 0) {
  weight_.name = spec.name + ".weight";
  weight_.blocks = std::move(spec.weight);
  weight_.cols = spec.in;
  weight_.col_unit = spec.in_unit;
  weight_.split = spec.split;
  weight_.init_std = spec.init_std;
  bias_.name = spec.name + ".bias";
  bias_.blocks = std::move(spec.bias);
  bias_.vector = true;
  bias_.split = spec.split == Split::kRows ? Split::kRows : Split::kNone;
  bias_.decay = false;
  bias_.init = Parameter::Init::kZeros;
}

void Linear::register_backward(ParamStore& store) {
  if (has_bias_) store.add(bias_);
  store.add(weight_);
}

void Linear::forward(Tensor y, Tensor x) const {
  ops_.linear(y, x, weight_.value, has_bias_ && adds_bias_ ? bias_.value : Tensor());
}

void Linear::input_grad(Tensor dx, Tensor dy) const {
  ops_.linear_dx(dx, dy, weight_.value);
}

void Linear::weight_grad(Tensor dy, Tensor x, StepContext& ctx) {
  if (has_bias_) {
    ops_.bias_grad(bias_.grad, dy, ctx.grads.write_mode(bias_));
    ctx.grads.ready(bias_);
  }
  ops_.linear_dw(weight_.grad, dy, x, ctx.grads.write_mode(weight_));
  ctx.grads.ready(weight_);
}

}  // namespace drivetrain
