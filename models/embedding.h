// Token embedding, cut over the tensor ranks by vocabulary rows, plus learned positions (GPT-2) and embedding dropout.
// The token table may be shared with the head (tied weights).
#pragma once
#include "models/layer_env.h"
#include "runtime/parameter.h"

namespace drivetrain {

// A (vocab, C) matrix of which this tensor rank holds a slice of rows.
class VocabTable {
 public:
  VocabTable(const std::string& name, const std::string& hf_name, const LayerEnv& env);
  Parameter& parameter() { return parameter_; }
  const Parameter& parameter() const { return parameter_; }
  VocabSlice slice() const { return slice_; }

 private:
  Parameter parameter_;
  VocabSlice slice_;
};

class Embedding {
 public:
  Embedding(VocabTable& tokens, const LayerEnv& env);
  void register_backward(ParamStore& store);  // positions, then tokens: the last gradients of all
  // x (m, C): rows of the residual stream.
  void forward(Tensor x, const Pass& pass, Arena& arena) const;
  void backward(Tensor dx, const Pass& pass, StepContext& ctx);

 private:
  const LayerEnv& env_;
  VocabTable& tokens_;
  bool learned_positions_;
  Parameter positions_;
};

}  // namespace drivetrain
