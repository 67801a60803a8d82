// FLOPs per trained token of a transformer, from plain numbers, in our own convention and in those of the published
// tools, so that figures can be compared. Counts only; measures nothing.
//
// Ours: a multiply-add is two FLOPs, forward + backward = 3 x forward; every matrix product of the blocks and the head
// is counted exactly, embedding look-ups and element-wise work are not, recomputation never is (that is `hfu`).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model.h"

namespace drivetrain {

struct FlopsShape {
  std::int64_t layers = 0, dim = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0;
  bool gated = false;  // three feed-forward matrices (SwiGLU) instead of two
  std::int64_t vocab = 0;
  std::int64_t padded_vocab = 0;   // what Megatron-style formulas take for V; 0: vocab
  bool tied = false;               // head and input embedding are one matrix
  std::int64_t position_rows = 0;  // rows of a learned position table; 0: none
  std::int64_t parameters = 0;     // all of them, tied ones once
  std::int64_t seq = 0;            // tokens per sequence
};

// Parts of the own convention, per token, forward and backward.
double block_matmul_flops(const FlopsShape& s);  // q, k, v, o and feed-forward of all layers
double head_flops(const FlopsShape& s);
double attention_flops_full(const FlopsShape& s);  // both attention products as if nothing were masked
double attention_flops_causal(const FlopsShape& s);

enum class FlopsConvention {
  kCausal,            // ours, default: exact products + half the attention square (= Megatron-LM head)
  kFullAttention,     // ours with the whole attention square
  kSixN,              // 6 N
  kHuggingFace,       // Trainer total_flos: 6 x parameters outside embeddings
  kMegatron,          // Megatron-LM, 2025: exact products, causal half, padded vocabulary
  kMegatron2024,      // Megatron-LM, July 2024: exact products, full attention, padded vocabulary
  kNanoGpt,           // 6 (N - position table) + 12 L H Q T
  kLlmC,              // 6 N + 6 L C T
  kTorchtitan,        // 6 (N - untied input embedding) + full attention
  kFoundry,           // llm-foundry and PaLM appendix B: 6 N + 12 L d T
  kPalm,              // the same
  kBloom,             // 6 N, attention ignored
  kNarayanan,         // Narayanan 2021 eq. 3: with full recomputation, a hardware figure
  kKorthikantiModel,  // Korthikanti 2022
  kKorthikantiHardware
};
double flops_per_token(const FlopsShape& s, FlopsConvention convention);
const char* name(FlopsConvention convention);
std::vector<FlopsConvention> flops_conventions();
// Throws kUsage listing the known names.
FlopsConvention flops_convention(const std::string& name);

// What the machine computes (HFU): the causal count plus one more forward of the blocks under full recomputation (4/3 of
// their FLOPs, as the field counts it; our replay leaves out the last projection). Selective recomputation replays norms
// and activation functions only, no matrix product.
double hardware_flops_per_token(const FlopsShape& s, Recompute recompute);

}  // namespace drivetrain
