// The op table: the whole of the mathematics that touches memory, one implementation per backend. Every op enqueues
// on the compute lane and returns. A backend implements all of it or does not compile.
//
// Conventions: outputs first. M = rows = tokens of the call. "compute dtype" is f32, bf16 or f16; statistics, masks
// and weight gradients are f32; every reduction accumulates in f32 or wider. Shapes and dtypes that do not fit throw
// kLogic. Formulas: docs/numerics.md.
#pragma once
#include <cstdint>

#include "kernels/tensor.h"

namespace drivetrain {

enum class Write { kOverwrite, kAccumulate };

struct AttentionShape {
  std::int64_t batch, seq, heads, kv_heads, head_dim;
  float scale;              // usually 1 / sqrt(head_dim)
  std::int64_t window = 0;  // a query sees its last `window` keys; 0 = all
};

// Counter-based dropout: element (key of its row, column) of site `site` is kept or dropped by
// philox(seed, site, key, column) alone, so the mask does not depend on layout, batch split or recompute.
struct Dropout {
  float p = 0;             // 0 = off
  std::uint64_t seed = 0;  // of the run, mixed with the optimizer step
  std::uint32_t site = 0;  // which dropout of the model
};

struct VocabSlice {
  std::int64_t begin;  // first vocabulary id of this slice
  std::int64_t count;  // ids in it; the columns of the logits beyond `count` are padding
};

struct AdamWArgs {
  float lr, beta1, beta2, eps, weight_decay;
  float grad_scale;   // multiplies the gradient first (clipping x unscaling)
  std::int64_t step;  // from 1, for the bias correction
};

class Ops {
 public:
  virtual ~Ops() = default;

  // ---- plain ------------------------------------------------------------------------------------------------
  virtual void zero(Tensor x) = 0;
  virtual void copy(Tensor y, Tensor x) = 0;           // same count; converts between f32, bf16, f16, f64
  virtual void add(Tensor y, Tensor a, Tensor b) = 0;  // y may be a or b; one compute dtype

  // ---- linear: w (N, K) in the compute dtype, x (M, K), y (M, N) ---------------------------------------------
  // y = x w^T (+ bias (N), compute dtype, may be absent). y is in the compute dtype or f32.
  virtual void linear(Tensor y, Tensor x, Tensor w, Tensor bias) = 0;
  // dx = dy w
  virtual void linear_dx(Tensor dx, Tensor dy, Tensor w) = 0;
  // dw (N, K) f32 (+)= dy^T x
  virtual void linear_dw(Tensor dw, Tensor dy, Tensor x, Write write) = 0;
  // db (N) f32 (+)= column sums of dy
  virtual void bias_grad(Tensor db, Tensor dy, Write write) = 0;
  // To be called after weights were written (load, optimizer step): packed copies are stale.
  virtual void weights_changed() = 0;
  // Bytes that the backend keeps beside a weight (packed copies) once linear and linear_dx ran on it.
  virtual std::size_t packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const = 0;

  // ---- embedding: table (V_local, C) holds ids [vocab_begin, vocab_begin + V_local) ---------------------------
  // y (M, C) (+)= table[ids]; rows whose id lies outside the slice count as zero.
  virtual void embedding(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, Write write) = 0;
  // dtable f32 (+)= scatter of dy by ids; deterministic. kOverwrite zeroes the whole table first.
  virtual void embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, Write write) = 0;

  // ---- norms: x (M, C), w, b (C) compute dtype; statistics f32 (M) --------------------------------------------
  // When delta is present: sum = x + delta (rounded to the compute dtype) is written and normalised; else x is.
  // y = w * round(x / sqrt(mean(x^2) + eps)), rounding to the compute dtype before the product (Hugging Face Llama).
  virtual void rms_norm(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps) = 0;
  // dx += gradient; dw f32 (+)= gradient. x is what was normalised.
  virtual void rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor inv_rms, Write write) = 0;
  virtual void layer_norm(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w,
                          Tensor b, float eps) = 0;
  virtual void layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean,
                               Tensor inv_std, Write write) = 0;

  // ---- activations --------------------------------------------------------------------------------------------
  virtual void gelu(Tensor y, Tensor x) = 0;  // tanh form ("gelu_new"): 0.5x(1+tanh(sqrt(2/pi)(x+0.044715x^3)))
  virtual void gelu_grad(Tensor dx, Tensor dy, Tensor x) = 0;  // dx may be dy
  // gate_up (M, 2F): columns [gate F | up F]; y (M, F) = silu(gate) * up
  virtual void swiglu(Tensor y, Tensor gate_up) = 0;
  virtual void swiglu_grad(Tensor dgate_up, Tensor dy, Tensor gate_up) = 0;
  // y (M, C) = kept ? x / (1 - p) : 0, mask by (row_keys i64 (M), column). y may be x. The backward is the same op on dy.
  virtual void dropout(Tensor y, Tensor x, Tensor row_keys, Dropout dropout) = 0;

  // ---- rotary positions and attention -------------------------------------------------------------------------
  // qkv (M, (H + 2 Hkv) D): columns [q heads | k heads | v heads]. Rotates q and k in place by cos, sin f32
  // (positions, D/2), half-split (element i pairs with i + D/2), row `positions[m]` (i32) for token m.
  virtual void rope(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) = 0;
  // The inverse rotation, for gradients.
  virtual void rope_grad(Tensor dqkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) = 0;
  // y (M, H D), lse f32 (B, H, T): causal attention inside documents. Query i sees key j iff
  // max(doc_starts[i], i - window + 1) <= j <= i, indices inside the sequence; doc_starts i32 (B, T).
  // kv head of query head h is h / (H / Hkv). Dropout acts on the probabilities, keyed by
  // (row_keys[i], h_global * seq + j) with h_global = head_begin + h.
  virtual void attention(Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts, Tensor row_keys,
                         const AttentionShape& s, Dropout dropout, std::int64_t head_begin) = 0;
  // dqkv (like qkv) is overwritten. delta f32 (B, H, T) is scratch.
  virtual void attention_grad(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv,
                              Tensor doc_starts, Tensor row_keys, const AttentionShape& s, Dropout dropout,
                              std::int64_t head_begin) = 0;
  // Generation. cache (2, B, capacity, Hkv D) holds rotated keys, then values. Stores k and v of qkv (B seq rows) at
  // positions [begin, begin + seq).
  virtual void kv_store(Tensor cache, Tensor qkv, const AttentionShape& s, std::int64_t begin) = 0;
  // One new token per sequence (s.seq == 1) at position `position`, already stored: y (B, H D).
  virtual void attention_decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape& s,
                                std::int64_t position) = 0;

  // ---- loss: logits (M, V_padded) compute dtype, targets i32 (M), kIgnore = no loss ---------------------------
  static constexpr std::int32_t kIgnore = -100;
  // stats f32 (M, 3): max over the slice, sum of exp(z - max), logit of the target (0 when it lies elsewhere).
  virtual void loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice) = 0;
  // all_stats f32 (tp, M, 3), gathered over the tensor ranks. loss_sum f64 (1) += sum over rows of log-sum-exp - target.
  virtual void loss_sum(Tensor loss_sum, Tensor all_stats, Tensor targets) = 0;
  // In place: logits become scale * (softmax - one-hot); zero for ignored rows and padding columns.
  virtual void loss_grad(Tensor logits, Tensor all_stats, Tensor targets, VocabSlice slice, float scale) = 0;

  // ---- optimizer ------------------------------------------------------------------------------------------------
  virtual void sum_squares(Tensor out, Tensor x) = 0;  // out f64 (1) += sum x^2, x f32; independent of threads
  // value (compute dtype, or absent) = round(master) after p -= lr wd p; m, v; p -= lr m^ / (sqrt(v^) + eps).
  virtual void adamw(Tensor master, Tensor m, Tensor v, Tensor value, Tensor grad, const AdamWArgs& args) = 0;
};

}  // namespace drivetrain
