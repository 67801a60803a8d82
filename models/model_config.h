// The hyper-parameters of a transformer of one of the supported families, from a Hugging Face config.json or a preset.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace drivetrain {

enum class Family { kGpt2, kLlama, kQwen2 };

struct RopeScaling {
  enum class Kind { kNone, kLinear, kLlama3, kYarn } kind = Kind::kNone;
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  std::int64_t original_positions = 8192;
  double beta_fast = 32, beta_slow = 1, attention_factor = 0;  // yarn; 0: 0.1 ln(factor) + 1
};

struct ModelConfig {
  Family family = Family::kLlama;
  std::int64_t layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0, positions = 0;
  double norm_eps = 1e-5;
  double rope_theta = 10000;
  RopeScaling rope;
  bool tied = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  std::int64_t window = 0;             // sliding window in tokens; 0: none
  std::int64_t window_from_layer = 0;  // layers below it attend fully (Qwen2 max_window_layers)
  double init_std = 0.02;
  double embed_dropout = 0, attention_dropout = 0, residual_dropout = 0;
};

// Throws kData naming file and key for a missing key, an unsupported model_type, rope type or activation.
ModelConfig read_hf_config(const std::filesystem::path& folder);
// "gpt2-124m", "llama-1b", ... Throws kConfig listing the known names.
ModelConfig preset(const std::string& name);
std::vector<std::string> preset_names();
// {layers, dim, heads, kv_heads, head_dim, ffn, vocab, seq, dropout, ...} = value. Throws kConfig.
void apply_overrides(ModelConfig& config, const std::map<std::string, std::string>& overrides);
// The config.json that `transformers` loads (family fields, dtype as named).
std::string hf_config_json(const ModelConfig& config, const std::string& torch_dtype);
// Throws kConfig naming field, value and tp when some tensor rank would be left without a key/value head, a hidden
// unit or a vocabulary row. Heads and sizes need not divide by tp.
void check_tensor_parallel(const ModelConfig& config, int tp);

}  // namespace drivetrain
