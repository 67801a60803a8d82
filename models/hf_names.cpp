#include "models/hf_names.h"

#include <cmath>

namespace drivetrain {
namespace {

std::string gpt2_layer(std::int64_t layer) {
  return "transformer.h." + std::to_string(layer) + ".";
}
std::string llama_layer(std::int64_t layer) {
  return "model.layers." + std::to_string(layer) + ".";
}
std::string own_layer(std::int64_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

// A whole file tensor as one block.
Block whole(std::int64_t rows, const std::string& name) {
  return {rows, name, 0, rows, false};
}

// Query rows that share a key/value head stay together on one tensor rank.
std::int64_t query_unit(const ModelConfig& c) {
  return c.heads / c.kv_heads * c.head_dim;
}

// Blocks are q, k, v: no head is cut, and a rank's query heads find their key/value head beside them.
void deal_by_heads(const ModelConfig& c, LinearSpec& s) {
  for (auto* blocks : {&s.weight, &s.bias})
    for (std::size_t i = 0; i < blocks->size(); ++i) (*blocks)[i].unit = i == 0 ? query_unit(c) : c.head_dim;
}

// Residual projections start smaller, by 1/sqrt(2 layers): Radford et al. 2019, section 2.3.
float residual_std(const ModelConfig& c) {
  return static_cast<float>(c.init_std / std::sqrt(2.0 * static_cast<double>(c.layers)));
}

}  // namespace

LinearSpec qkv_spec(const ModelConfig& c, std::int64_t layer) {
  LinearSpec s;
  s.name = own_layer(layer) + "attn.qkv";
  s.in = c.dim;
  s.split = Split::kRows;
  s.init_std = static_cast<float>(c.init_std);
  const std::int64_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  if (c.family == Family::kGpt2) {
    const std::string name = gpt2_layer(layer) + "attn.c_attn.";
    const std::int64_t all = q + 2 * kv;
    s.weight = {{q, name + "weight", 0, all, true},
                {kv, name + "weight", q, all, true},
                {kv, name + "weight", q + kv, all, true}};
    s.bias = {{q, name + "bias", 0, all, false},
              {kv, name + "bias", q, all, false},
              {kv, name + "bias", q + kv, all, false}};
    deal_by_heads(c, s);
    return s;
  }
  const std::string name = llama_layer(layer) + "self_attn.";
  s.weight = {whole(q, name + "q_proj.weight"), whole(kv, name + "k_proj.weight"), whole(kv, name + "v_proj.weight")};
  if (c.qkv_bias)
    s.bias = {whole(q, name + "q_proj.bias"), whole(kv, name + "k_proj.bias"), whole(kv, name + "v_proj.bias")};
  deal_by_heads(c, s);
  return s;
}

LinearSpec attention_output_spec(const ModelConfig& c, std::int64_t layer) {
  LinearSpec s;
  s.name = own_layer(layer) + "attn.output";
  s.in = c.heads * c.head_dim;
  s.in_unit = query_unit(c);
  s.split = Split::kCols;
  s.init_std = residual_std(c);
  const bool gpt2 = c.family == Family::kGpt2;
  const std::string name = gpt2 ? gpt2_layer(layer) + "attn.c_proj." : llama_layer(layer) + "self_attn.o_proj.";
  s.weight = {{c.dim, name + "weight", 0, c.dim, gpt2}};
  if (c.output_bias) s.bias = {whole(c.dim, name + "bias")};
  return s;
}

LinearSpec mlp_up_spec(const ModelConfig& c, std::int64_t layer) {
  LinearSpec s;
  s.name = own_layer(layer) + "mlp.up";
  s.in = c.dim;
  s.split = Split::kRows;
  s.init_std = static_cast<float>(c.init_std);
  if (c.family == Family::kGpt2) {
    const std::string name = gpt2_layer(layer) + "mlp.c_fc.";
    s.weight = {{c.ffn, name + "weight", 0, c.ffn, true}};
    s.bias = {whole(c.ffn, name + "bias")};
    return s;
  }
  const std::string name = llama_layer(layer) + "mlp.";
  s.weight = {whole(c.ffn, name + "gate_proj.weight"), whole(c.ffn, name + "up_proj.weight")};
  if (c.mlp_bias) s.bias = {whole(c.ffn, name + "gate_proj.bias"), whole(c.ffn, name + "up_proj.bias")};
  return s;
}

LinearSpec mlp_down_spec(const ModelConfig& c, std::int64_t layer) {
  LinearSpec s;
  s.name = own_layer(layer) + "mlp.down";
  s.in = c.ffn;
  s.split = Split::kCols;
  s.init_std = residual_std(c);
  const bool gpt2 = c.family == Family::kGpt2;
  const std::string name = gpt2 ? gpt2_layer(layer) + "mlp.c_proj." : llama_layer(layer) + "mlp.down_proj.";
  s.weight = {{c.dim, name + "weight", 0, c.dim, gpt2}};
  if (c.mlp_bias) s.bias = {whole(c.dim, name + "bias")};
  return s;
}

NormSpec block_norm_spec(const ModelConfig& c, std::int64_t layer, BlockNorm which, bool partial_grads) {
  const bool first = which == BlockNorm::kBeforeAttention;
  const std::string own = own_layer(layer) + (first ? "norm1" : "norm2");
  const auto eps = static_cast<float>(c.norm_eps);
  if (c.family == Family::kGpt2) {
    const std::string name = gpt2_layer(layer) + (first ? "ln_1." : "ln_2.");
    return {NormSpec::Kind::kLayer, own, name + "weight", name + "bias", c.dim, eps, partial_grads};
  }
  const std::string name = llama_layer(layer) + (first ? "input_layernorm." : "post_attention_layernorm.");
  return {NormSpec::Kind::kRms, own, name + "weight", "", c.dim, eps, partial_grads};
}

NormSpec final_norm_spec(const ModelConfig& c, bool partial_grads) {
  const auto eps = static_cast<float>(c.norm_eps);
  if (c.family == Family::kGpt2)
    return {NormSpec::Kind::kLayer, "norm", "transformer.ln_f.weight", "transformer.ln_f.bias", c.dim, eps,
            partial_grads};
  return {NormSpec::Kind::kRms, "norm", "model.norm.weight", "", c.dim, eps, partial_grads};
}

std::string token_embedding_name(const ModelConfig& c) {
  return c.family == Family::kGpt2 ? "transformer.wte.weight" : "model.embed_tokens.weight";
}

std::string position_embedding_name(const ModelConfig&) {
  return "transformer.wpe.weight";
}

std::string head_name(const ModelConfig&) {
  return "lm_head.weight";
}

bool is_ignorable_tensor(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

std::map<std::string, std::string> stored_names(const ModelConfig& c, const std::vector<std::string>& names) {
  const std::string prefix = c.family == Family::kGpt2 ? "transformer." : "model.";
  for (const std::string& n : names)
    if (n.starts_with(prefix)) return {};
  std::map<std::string, std::string> out;
  for (const std::string& n : names)
    if (n != head_name(c)) out[n] = prefix + n;
  return out;
}

}  // namespace drivetrain
