// The op table of the CPU: each op is a function of the same name in namespace drivetrain::cpu; those with state of their
// own (packed weights, scratch) are objects here. No mathematics in this file.
#pragma once
#include "kernels/cpu/attention.h"
#include "kernels/cpu/linear.h"
#include "kernels/ops.h"

namespace drivetrain::cpu {

class CpuOps final : public Ops {
 public:
  // The pool outlives the ops.
  CpuOps(HostPool& pool, int threads) : threads_(threads), linear_(pool), attention_(pool) {}

  void zero(Tensor x) override;
  void copy(Tensor y, Tensor x) override;
  void add(Tensor y, Tensor a, Tensor b) override;

  void linear(Tensor y, Tensor x, Tensor w, Tensor bias) override;
  void linear_dx(Tensor dx, Tensor dy, Tensor w) override;
  void linear_dw(Tensor dw, Tensor dy, Tensor x, Write write) override;
  void bias_grad(Tensor db, Tensor dy, Write write) override;
  void weights_changed() override;
  std::size_t packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const override;

  void embedding(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, Write write) override;
  void embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, Write write) override;

  void rms_norm(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps) override;
  void rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor inv_rms, Write write) override;
  void layer_norm(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w, Tensor b,
                  float eps) override;
  void layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean, Tensor inv_std,
                       Write write) override;

  void gelu(Tensor y, Tensor x) override;
  void gelu_grad(Tensor dx, Tensor dy, Tensor x) override;
  void swiglu(Tensor y, Tensor gate_up) override;
  void swiglu_grad(Tensor dgate_up, Tensor dy, Tensor gate_up) override;
  void dropout(Tensor y, Tensor x, Tensor row_keys, Dropout dropout) override;

  void rope(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) override;
  void rope_grad(Tensor dqkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) override;
  void attention(Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts, Tensor row_keys, const AttentionShape& s,
                 Dropout dropout, std::int64_t head_begin) override;
  void attention_grad(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts,
                      Tensor row_keys, const AttentionShape& s, Dropout dropout, std::int64_t head_begin) override;
  void kv_store(Tensor cache, Tensor qkv, const AttentionShape& s, std::int64_t begin) override;
  void attention_decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape& s, std::int64_t position) override;

  void loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice) override;
  void loss_sum(Tensor loss_sum, Tensor all_stats, Tensor targets) override;
  void loss_grad(Tensor logits, Tensor all_stats, Tensor targets, VocabSlice slice, float scale) override;

  void sum_squares(Tensor out, Tensor x) override;
  void adamw(Tensor master, Tensor m, Tensor v, Tensor value, Tensor grad, const AdamWArgs& args) override;

 private:
  int threads_;
  Linear linear_;
  Attention attention_;
};

}  // namespace drivetrain::cpu
