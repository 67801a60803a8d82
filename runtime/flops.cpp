#include "runtime/flops.h"

#include <algorithm>
#include <array>
#include <utility>

namespace drivetrain {
namespace {

constexpr std::array<std::pair<FlopsConvention, const char*>, 15> kNames{{
    {FlopsConvention::kCausal, "causal"},
    {FlopsConvention::kFullAttention, "full"},
    {FlopsConvention::kSixN, "6n"},
    {FlopsConvention::kHuggingFace, "hf"},
    {FlopsConvention::kMegatron, "megatron"},
    {FlopsConvention::kMegatron2024, "megatron-2024"},
    {FlopsConvention::kNanoGpt, "nanogpt"},
    {FlopsConvention::kLlmC, "llmc"},
    {FlopsConvention::kTorchtitan, "torchtitan"},
    {FlopsConvention::kFoundry, "foundry"},
    {FlopsConvention::kPalm, "palm"},
    {FlopsConvention::kBloom, "bloom"},
    {FlopsConvention::kNarayanan, "narayanan"},
    {FlopsConvention::kKorthikantiModel, "korthikanti-model"},
    {FlopsConvention::kKorthikantiHardware, "korthikanti-hardware"},
}};

double real(std::int64_t n) {
  return static_cast<double>(n);
}
double embedding_parameters(const FlopsShape& s) {
  return real(s.vocab) * real(s.dim);
}
double position_parameters(const FlopsShape& s) {
  return real(s.position_rows) * real(s.dim);
}
double padded_head_flops(const FlopsShape& s) {
  return 6 * real(s.dim) * real(s.padded_vocab > 0 ? s.padded_vocab : s.vocab);
}

// factor L h^2 (1 + s / (attention_divisor h) + V / (head_divisor L h)), a family of formulas for ffn = 4 h.
double paper_formula(const FlopsShape& s, double factor, double attention_divisor, double head_divisor) {
  const double h = real(s.dim), layers = real(s.layers), v = padded_head_flops(s) / (6 * h);
  return factor * layers * h * h * (1 + real(s.seq) / (attention_divisor * h) + v / (head_divisor * layers * h));
}

}  // namespace

double block_matmul_flops(const FlopsShape& s) {
  const double q = real(s.heads) * real(s.head_dim), kv = real(s.kv_heads) * real(s.head_dim);
  const double attention = real(s.dim) * (q + 2 * kv) + q * real(s.dim);
  const double feed_forward = (s.gated ? 3 : 2) * real(s.dim) * real(s.ffn);
  return 6 * real(s.layers) * (attention + feed_forward);
}

double head_flops(const FlopsShape& s) {
  return 6 * real(s.dim) * real(s.vocab);
}

double attention_flops_full(const FlopsShape& s) {
  return 12 * real(s.layers) * real(s.heads) * real(s.head_dim) * real(s.seq);
}

double attention_flops_causal(const FlopsShape& s) {
  return attention_flops_full(s) / 2;
}

double flops_per_token(const FlopsShape& s, FlopsConvention convention) {
  const double six_n = 6 * real(s.parameters), l_d_t = real(s.layers) * real(s.dim) * real(s.seq);
  switch (convention) {
    case FlopsConvention::kCausal:
      return block_matmul_flops(s) + head_flops(s) + attention_flops_causal(s);
    case FlopsConvention::kFullAttention:
      return block_matmul_flops(s) + head_flops(s) + attention_flops_full(s);
    case FlopsConvention::kHuggingFace:
      return six_n - 6 * (embedding_parameters(s) + position_parameters(s));
    case FlopsConvention::kMegatron:
      return block_matmul_flops(s) + padded_head_flops(s) + attention_flops_causal(s);
    case FlopsConvention::kMegatron2024:
      return block_matmul_flops(s) + padded_head_flops(s) + attention_flops_full(s);
    case FlopsConvention::kNanoGpt:
      return six_n - 6 * position_parameters(s) + attention_flops_full(s);
    case FlopsConvention::kLlmC:
      return six_n + 6 * l_d_t;
    case FlopsConvention::kTorchtitan:
      return six_n - (s.tied ? 0 : 6 * embedding_parameters(s)) + attention_flops_full(s);
    case FlopsConvention::kFoundry:
    case FlopsConvention::kPalm:
      return six_n + 12 * l_d_t;
    case FlopsConvention::kNarayanan:
      return paper_formula(s, 96, 6, 16);
    case FlopsConvention::kKorthikantiModel:
      return paper_formula(s, 72, 6, 12);
    case FlopsConvention::kKorthikantiHardware:
      return paper_formula(s, 72, 3, 12);
    case FlopsConvention::kSixN:
    case FlopsConvention::kBloom:
      return six_n;
  }
  return six_n;
}

const char* name(FlopsConvention convention) {
  for (const auto& [known, text] : kNames)
    if (known == convention) return text;
  return "?";
}

std::vector<FlopsConvention> flops_conventions() {
  std::vector<FlopsConvention> all;
  for (const auto& row : kNames) all.push_back(row.first);
  return all;
}

FlopsConvention flops_convention(const std::string& wanted) {
  std::string known;
  for (const auto& [convention, text] : kNames) {
    if (wanted == text) return convention;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw Error(ErrorKind::kUsage, "unknown FLOPs convention '" + wanted + "'; known: " + known);
}

double hardware_flops_per_token(const FlopsShape& s, Recompute recompute) {
  const double model = flops_per_token(s, FlopsConvention::kCausal);
  if (recompute == Recompute::kFull) return model + (block_matmul_flops(s) + attention_flops_causal(s)) / 3;
  return model;
}

}  // namespace drivetrain
