// Hugging Face config.json -> ModelConfig and back.
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/error.h"
#include "models/model_config.h"

namespace drivetrain {
namespace {

using Json = nlohmann::json;

// Typed access to one JSON object; every fault names file and key.
class Reader {
 public:
  Reader(const Json& object, std::string file) : object_(object), file_(std::move(file)) {}

  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::kData, file_ + ": " + what); }
  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  const Json& at(const char* key) const { return object_[key]; }
  const std::string& file() const { return file_; }

  std::int64_t integer(const char* key) const {
    if (!has(key)) fail(std::string("key \"") + key + "\" is missing");
    if (!object_[key].is_number_integer() || object_[key].get<double>() < 1 || object_[key].get<double>() > 1e9)
      fail(std::string("key \"") + key + "\" is " + object_[key].dump() + "; a whole number from 1 to 1e9 is needed");
    return object_[key].get<std::int64_t>();
  }
  std::int64_t integer(const char* key, std::int64_t fallback) const { return has(key) ? integer(key) : fallback; }
  double number(const char* key, double fallback) const {
    if (!has(key)) return fallback;
    if (!object_[key].is_number())
      fail(std::string("key \"") + key + "\" is " + object_[key].dump() + ", not a number");
    return object_[key].get<double>();
  }
  bool flag(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!object_[key].is_boolean())
      fail(std::string("key \"") + key + "\" is " + object_[key].dump() + ", not true or false");
    return object_[key].get<bool>();
  }
  std::string text(const char* key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!object_[key].is_string()) fail(std::string("key \"") + key + "\" is " + object_[key].dump() + ", not text");
    return object_[key].get<std::string>();
  }
  void require(const char* key, const std::string& found, const std::vector<std::string>& allowed) const {
    for (const std::string& a : allowed)
      if (found == a) return;
    std::string list;
    for (const std::string& a : allowed) list += (list.empty() ? "" : ", ") + a;
    fail(std::string("\"") + key + "\" is \"" + found + "\"; supported: " + list);
  }

 private:
  const Json& object_;
  std::string file_;
};

void read_rope_block(const Reader& r, ModelConfig& c) {
  c.rope_theta = r.number("rope_theta", c.rope_theta);
  const std::string old_type = r.text("type", ""),
                    type = r.text("rope_type", old_type.empty() ? "default" : old_type);
  if (!old_type.empty() && old_type != type)
    r.fail("the rope block says type \"" + old_type + "\" and rope_type \"" + type + "\"; they must agree");
  r.require("rope_type", type, {"default", "linear", "llama3", "yarn"});
  if (type == "default") return;
  RopeScaling& s = c.rope;
  s.kind = type == "linear"   ? RopeScaling::Kind::kLinear
           : type == "llama3" ? RopeScaling::Kind::kLlama3
                              : RopeScaling::Kind::kYarn;
  if (!r.has("factor")) r.fail("rope_type \"" + type + "\" needs \"factor\"");
  s.factor = r.number("factor", 1);
  if (!(s.factor >= 1)) r.fail("rope factor " + std::to_string(s.factor) + " is below 1");
  s.low_freq_factor = r.number("low_freq_factor", 1);
  s.high_freq_factor = r.number("high_freq_factor", 4);
  s.original_positions =
      r.integer("original_max_position_embeddings", type == "yarn" ? c.positions : s.original_positions);
  s.beta_fast = r.number("beta_fast", 32);
  s.beta_slow = r.number("beta_slow", 1);
  s.attention_factor = r.number("attention_factor", 0);
  for (const char* unknown : {"mscale", "mscale_all_dim", "truncate"})
    if (r.has(unknown)) r.fail(std::string("rope option \"") + unknown + "\" is not supported");
  if (type == "llama3" && !(s.high_freq_factor > s.low_freq_factor))
    r.fail("llama3 rope needs high_freq_factor above low_freq_factor");
}

void read_rope(const Reader& r, ModelConfig& c) {
  c.rope_theta = r.number("rope_theta", 10000);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!r.has(key)) continue;
    if (!r.at(key).is_object()) r.fail(std::string("key \"") + key + "\" is not an object");
    read_rope_block(Reader(r.at(key), r.file()), c);
  }
  if (!(c.rope_theta > 0)) r.fail("rope_theta must be positive");
  if (r.number("partial_rotary_factor", 1) != 1) r.fail("partial_rotary_factor other than 1 is not supported");
}

ModelConfig read_llama_like(const Reader& r, Family family) {
  ModelConfig c;
  c.family = family;
  c.layers = r.integer("num_hidden_layers");
  c.dim = r.integer("hidden_size");
  c.heads = r.integer("num_attention_heads");
  c.kv_heads = r.integer("num_key_value_heads", c.heads);
  if (!r.has("head_dim") && c.dim % c.heads != 0)
    r.fail("hidden_size " + std::to_string(c.dim) + " is not a multiple of num_attention_heads " +
           std::to_string(c.heads) + " and head_dim is not given");
  c.head_dim = r.integer("head_dim", c.dim / c.heads);
  c.ffn = r.integer("intermediate_size");
  c.vocab = r.integer("vocab_size");
  c.positions = r.integer("max_position_embeddings", 2048);
  c.norm_eps = r.number("rms_norm_eps", 1e-6);
  c.tied = r.flag("tie_word_embeddings", false);
  c.init_std = r.number("initializer_range", 0.02);
  c.attention_dropout = r.number("attention_dropout", 0);
  r.require("hidden_act", r.text("hidden_act", "silu"), {"silu"});
  if (family == Family::kLlama) {
    c.qkv_bias = c.output_bias = r.flag("attention_bias", false);
    c.mlp_bias = r.flag("mlp_bias", false);
  } else {
    c.qkv_bias = true;
    if (r.flag("use_sliding_window", false)) {
      c.window = r.integer("sliding_window", 4096);
      c.window_from_layer =
          r.has("max_window_layers") ? static_cast<std::int64_t>(r.number("max_window_layers", 0)) : 28;
    }
  }
  read_rope(r, c);
  return c;
}

ModelConfig read_gpt2(const Reader& r) {
  ModelConfig c;
  c.family = Family::kGpt2;
  c.layers = r.integer("n_layer");
  c.dim = r.integer("n_embd");
  c.heads = c.kv_heads = r.integer("n_head");
  if (c.dim % c.heads != 0)
    r.fail("n_embd " + std::to_string(c.dim) + " is not a multiple of n_head " + std::to_string(c.heads));
  c.head_dim = c.dim / c.heads;
  c.ffn = r.integer("n_inner", 4 * c.dim);
  c.vocab = r.integer("vocab_size");
  c.positions = r.integer("n_positions", r.integer("n_ctx", 1024));
  c.norm_eps = r.number("layer_norm_epsilon", 1e-5);
  c.tied = r.flag("tie_word_embeddings", true);
  c.init_std = r.number("initializer_range", 0.02);
  c.embed_dropout = r.number("embd_pdrop", 0.1);
  c.attention_dropout = r.number("attn_pdrop", 0.1);
  c.residual_dropout = r.number("resid_pdrop", 0.1);
  c.qkv_bias = c.output_bias = c.mlp_bias = true;
  r.require("activation_function", r.text("activation_function", "gelu_new"), {"gelu_new", "gelu_pytorch_tanh"});
  if (!r.flag("scale_attn_weights", true)) r.fail("scale_attn_weights false is not supported");
  for (const char* key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn", "add_cross_attention"})
    if (r.flag(key, false)) r.fail(std::string(key) + " true is not supported");
  return c;
}

void check_ranges(const Reader& r, const ModelConfig& c) {
  if (c.heads % c.kv_heads != 0)
    r.fail("num_attention_heads " + std::to_string(c.heads) + " is not a multiple of num_key_value_heads " +
           std::to_string(c.kv_heads));
  if (c.family != Family::kGpt2 && c.head_dim % 2 != 0)
    r.fail("head_dim " + std::to_string(c.head_dim) + " is odd; rotary positions pair its halves");
  if (!(c.norm_eps > 0 && c.norm_eps < 1)) r.fail("the norm epsilon must lie between 0 and 1");
  for (double p : {c.embed_dropout, c.attention_dropout, c.residual_dropout})
    if (!(p >= 0 && p < 1)) r.fail("dropout " + std::to_string(p) + " is outside [0, 1)");
}

Json rope_json(const ModelConfig& c) {
  switch (c.rope.kind) {
    case RopeScaling::Kind::kNone:
      return nullptr;
    case RopeScaling::Kind::kLinear:
      return {{"rope_type", "linear"}, {"factor", c.rope.factor}};
    case RopeScaling::Kind::kLlama3:
      return {{"rope_type", "llama3"},
              {"factor", c.rope.factor},
              {"low_freq_factor", c.rope.low_freq_factor},
              {"high_freq_factor", c.rope.high_freq_factor},
              {"original_max_position_embeddings", c.rope.original_positions}};
    case RopeScaling::Kind::kYarn:
      break;
  }
  Json yarn = {{"rope_type", "yarn"},
               {"factor", c.rope.factor},
               {"beta_fast", c.rope.beta_fast},
               {"beta_slow", c.rope.beta_slow},
               {"original_max_position_embeddings", c.rope.original_positions}};
  if (c.rope.attention_factor > 0) yarn["attention_factor"] = c.rope.attention_factor;
  return yarn;
}

Json gpt2_json(const ModelConfig& c) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_layer", c.layers},
          {"n_embd", c.dim},
          {"n_head", c.heads},
          {"n_inner", c.ffn},
          {"n_positions", c.positions},
          {"n_ctx", c.positions},
          {"layer_norm_epsilon", c.norm_eps},
          {"activation_function", "gelu_new"},
          {"embd_pdrop", c.embed_dropout},
          {"attn_pdrop", c.attention_dropout},
          {"resid_pdrop", c.residual_dropout}};
}

Json llama_json(const ModelConfig& c) {
  const bool qwen = c.family == Family::kQwen2;
  Json j = {{"architectures", {qwen ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
            {"model_type", qwen ? "qwen2" : "llama"},
            {"num_hidden_layers", c.layers},
            {"hidden_size", c.dim},
            {"num_attention_heads", c.heads},
            {"num_key_value_heads", c.kv_heads},
            {"head_dim", c.head_dim},
            {"intermediate_size", c.ffn},
            {"max_position_embeddings", c.positions},
            {"rms_norm_eps", c.norm_eps},
            {"hidden_act", "silu"},
            {"rope_theta", c.rope_theta},
            {"rope_scaling", rope_json(c)},
            {"attention_dropout", c.attention_dropout}};
  if (qwen) {
    j["use_sliding_window"] = c.window > 0;
    if (c.window > 0) {
      j["sliding_window"] = c.window;
      j["max_window_layers"] = c.window_from_layer;
    }
  } else {
    j["attention_bias"] = c.qkv_bias;
    j["mlp_bias"] = c.mlp_bias;
  }
  return j;
}

}  // namespace

ModelConfig read_hf_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw Error(ErrorKind::kData, path.string() + ": cannot be opened; model.path must be a Hugging Face folder");
  std::stringstream text;
  text << in.rdbuf();
  Json json;
  try {
    json = Json::parse(text.str());
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kData, path.string() + ": not valid JSON: " + e.what());
  }
  const Reader reader(json, path.string());
  if (!json.is_object()) reader.fail("not a JSON object");
  const std::string type = reader.text("model_type", "");
  reader.require("model_type", type, {"gpt2", "llama", "qwen2"});
  ModelConfig c = type == "gpt2"    ? read_gpt2(reader)
                  : type == "llama" ? read_llama_like(reader, Family::kLlama)
                                    : read_llama_like(reader, Family::kQwen2);
  check_ranges(reader, c);
  return c;
}

std::string hf_config_json(const ModelConfig& config, const std::string& torch_dtype) {
  Json j = config.family == Family::kGpt2 ? gpt2_json(config) : llama_json(config);
  j["vocab_size"] = config.vocab;
  j["tie_word_embeddings"] = config.tied;
  j["initializer_range"] = config.init_std;
  j["torch_dtype"] = torch_dtype;
  return j.dump(2) + "\n";
}

}  // namespace drivetrain
