// Frequencies and tables of rotary position embeddings, in the Hugging Face (half-split) convention.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/buffer.h"
#include "models/model_config.h"

namespace drivetrain {

// inv_freq[i] = theta^(-2i/D), i < D/2, after scaling: linear (Chen et al. 2023), llama3 (Llama 3.1 model code) or yarn
// (Peng et al. 2023, arXiv:2309.00071, as in transformers' modeling_rope_utils).
std::vector<double> rope_frequencies(const ModelConfig& config);
// What cos and sin are multiplied by: 1 but for yarn.
double rope_attention_factor(const ModelConfig& config);

class RopeTable {
 public:
  RopeTable() = default;  // no rotation (learned positions)
  // cos and sin f32 (positions, D/2). The angle is a product of f32 values, as in the reference.
  RopeTable(Device& device, const ModelConfig& config, std::int64_t positions);
  bool present() const { return cos_.present(); }
  Tensor cos() const { return cos_; }
  Tensor sin() const { return sin_; }

 private:
  Buffer buffer_;
  Tensor cos_, sin_;
};

}  // namespace drivetrain
