// Model shapes by name, overrides of single fields, and what can be cut over tensor ranks.
#include <charconv>
#include <functional>
#include <stdexcept>

#include "kernels/error.h"
#include "models/model_config.h"

namespace drivetrain {
namespace {

ModelConfig gpt2(std::int64_t layers, std::int64_t dim, std::int64_t heads) {
  ModelConfig c;
  c.family = Family::kGpt2;
  c.layers = layers;
  c.dim = dim;
  c.heads = c.kv_heads = heads;
  c.head_dim = dim / heads;
  c.ffn = 4 * dim;
  c.vocab = 50257;
  c.positions = 1024;
  c.tied = true;
  c.qkv_bias = c.output_bias = c.mlp_bias = true;
  return c;
}

struct LlamaShape {
  std::int64_t layers, dim, heads, kv_heads, ffn, vocab, positions;
  double theta;
};

ModelConfig llama(const LlamaShape& s, bool tied) {
  ModelConfig c;
  c.family = Family::kLlama;
  c.layers = s.layers;
  c.dim = s.dim;
  c.heads = s.heads;
  c.kv_heads = s.kv_heads;
  c.head_dim = s.dim / s.heads;
  c.ffn = s.ffn;
  c.vocab = s.vocab;
  c.positions = s.positions;
  c.rope_theta = s.theta;
  c.tied = tied;
  return c;
}

ModelConfig llama3_scaled(ModelConfig c, double factor) {
  c.rope = {RopeScaling::Kind::kLlama3, factor, 1, 4, 8192};
  return c;
}

ModelConfig qwen2(const LlamaShape& s, bool tied) {
  ModelConfig c = llama(s, tied);
  c.family = Family::kQwen2;
  c.qkv_bias = true;
  c.norm_eps = 1e-6;
  return c;
}

// Shapes: Radford et al. 2019 table 2 (GPT-2); config.json of the named models (Llama, SmolLM2, Qwen2.5).
const std::map<std::string, ModelConfig>& presets() {
  static const std::map<std::string, ModelConfig> table = {
      {"gpt2-124m", gpt2(12, 768, 12)},
      {"gpt2-355m", gpt2(24, 1024, 16)},
      {"gpt2-774m", gpt2(36, 1280, 20)},
      {"gpt2-1558m", gpt2(48, 1600, 25)},
      {"llama-tiny", llama({4, 256, 8, 4, 704, 257, 1024, 10000}, true)},
      {"llama2-7b", llama({32, 4096, 32, 32, 11008, 32000, 4096, 10000}, false)},
      {"llama3.2-1b", llama3_scaled(llama({16, 2048, 32, 8, 8192, 128256, 131072, 500000}, true), 32)},
      {"llama3.1-8b", llama3_scaled(llama({32, 4096, 32, 8, 14336, 128256, 131072, 500000}, false), 8)},
      {"llama3.1-70b", llama3_scaled(llama({80, 8192, 64, 8, 28672, 128256, 131072, 500000}, false), 8)},
      {"smollm2-135m", llama({30, 576, 9, 3, 1536, 49152, 8192, 100000}, true)},
      {"qwen2.5-0.5b", qwen2({24, 896, 14, 2, 4864, 151936, 32768, 1000000}, true)},
      {"qwen2.5-7b", qwen2({28, 3584, 28, 4, 18944, 152064, 131072, 1000000}, false)},
  };
  return table;
}

[[noreturn]] void bad_override(const std::string& key, const std::string& value, const std::string& why) {
  throw Error(ErrorKind::kConfig, "model.override." + key + " = " + value + ": " + why);
}

double parse_number(const std::string& key, const std::string& value) {
  double x = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), x);
  if (error != std::errc() || end != value.data() + value.size()) bad_override(key, value, "not a number");
  return x;
}

std::int64_t parse_count(const std::string& key, const std::string& value) {
  const double x = parse_number(key, value);
  if (!(x >= 1 && x <= 1e9) || x != static_cast<double>(static_cast<std::int64_t>(x)))
    bad_override(key, value, "a whole number from 1 to 1e9 is needed");
  return static_cast<std::int64_t>(x);
}

double parse_probability(const std::string& key, const std::string& value) {
  const double x = parse_number(key, value);
  if (!(x >= 0 && x < 1)) bad_override(key, value, "a probability in [0, 1) is needed");
  return x;
}

bool parse_flag(const std::string& key, const std::string& value) {
  if (value == "true") return true;
  if (value == "false") return false;
  bad_override(key, value, "true or false is needed");
}

}  // namespace

ModelConfig preset(const std::string& name) {
  const auto it = presets().find(name);
  if (it != presets().end()) return it->second;
  std::string known;
  for (const std::string& n : preset_names()) known += (known.empty() ? "" : ", ") + n;
  throw Error(ErrorKind::kConfig, "model.preset = " + name + " is not known; known presets: " + known);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const auto& [name, config] : presets()) names.push_back(name);
  return names;
}

void apply_overrides(ModelConfig& c, const std::map<std::string, std::string>& overrides) {
  const bool explicit_head_dim = overrides.contains("head_dim");
  const std::map<std::string, std::function<void(const std::string&, const std::string&)>> fields = {
      {"layers",
       [&](auto& k, auto& v) {
         c.layers = parse_count(k, v);
         if (c.layers > 10000) bad_override(k, v, "at most 10000 layers");
       }},
      {"dim", [&](auto& k, auto& v) { c.dim = parse_count(k, v); }},
      {"heads", [&](auto& k, auto& v) { c.heads = parse_count(k, v); }},
      {"kv_heads", [&](auto& k, auto& v) { c.kv_heads = parse_count(k, v); }},
      {"head_dim", [&](auto& k, auto& v) { c.head_dim = parse_count(k, v); }},
      {"ffn", [&](auto& k, auto& v) { c.ffn = parse_count(k, v); }},
      {"vocab", [&](auto& k, auto& v) { c.vocab = parse_count(k, v); }},
      {"positions", [&](auto& k, auto& v) { c.positions = parse_count(k, v); }},
      {"tied", [&](auto& k, auto& v) { c.tied = parse_flag(k, v); }},
      {"embed_dropout", [&](auto& k, auto& v) { c.embed_dropout = parse_probability(k, v); }},
      {"attention_dropout", [&](auto& k, auto& v) { c.attention_dropout = parse_probability(k, v); }},
      {"residual_dropout", [&](auto& k, auto& v) { c.residual_dropout = parse_probability(k, v); }},
      {"dropout",
       [&](auto& k, auto& v) {
         c.embed_dropout = c.attention_dropout = c.residual_dropout = parse_probability(k, v);
       }},
  };
  for (const auto& [key, value] : overrides) {
    const auto field = fields.find(key);
    if (field == fields.end()) {
      std::string known;
      for (const auto& [name, set] : fields) known += (known.empty() ? "" : ", ") + name;
      bad_override(key, value, "no such field; known: " + known);
    }
    field->second(key, value);
  }
  if (overrides.contains("heads") && !overrides.contains("kv_heads") && c.family == Family::kGpt2)
    c.kv_heads = c.heads;
  if (c.heads % c.kv_heads != 0)
    bad_override("kv_heads", std::to_string(c.kv_heads), "must divide heads = " + std::to_string(c.heads));
  if (!explicit_head_dim && (overrides.contains("dim") || overrides.contains("heads"))) {
    if (c.dim % c.heads != 0)
      bad_override("dim", std::to_string(c.dim), "must be a multiple of heads = " + std::to_string(c.heads));
    c.head_dim = c.dim / c.heads;
  }
  if (c.family != Family::kGpt2 && c.head_dim % 2 != 0)
    bad_override("head_dim", std::to_string(c.head_dim), "must be even for rotary positions");
}

void check_tensor_parallel(const ModelConfig& c, int tp) {
  const auto check = [&](const char* field, std::int64_t value) {
    if (value < tp)
      throw Error(ErrorKind::kConfig, std::string(field) + " = " + std::to_string(value) +
                                          " is less than parallel.tp = " + std::to_string(tp) +
                                          ": every tensor rank needs at least one; lower parallel.tp");
  };
  check("num_key_value_heads", c.kv_heads);
  check("intermediate_size", c.ffn);
  check("vocab_size", c.vocab);
}

}  // namespace drivetrain
