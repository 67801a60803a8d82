// An op table that charges every op to a ledger, class, arithmetic and least memory traffic with it, and computes with
// another one. For devices whose ops are over when they return. Costs two clock reads an op.
#pragma once
#include <utility>

#include "kernels/ops.h"
#include "runtime/ledger/step_ledger.h"

namespace drivetrain {

// FLOPs: a multiply-add is two. Matrix products and attention are counted exactly as executed, by shape. Attention takes
// the causal half of the square (of the band under a window), as flops.h does, whatever documents mask beyond it: the
// masks lie in device memory. Its backward computes the scores once more: five products to the two of forward, where
// model FLOPs count four. For other ops: operations an element, a function like exp counting one.
// Bytes: every tensor read once and written once, accumulated ones both.
class LedgerOps final : public Ops {
 public:
  // Both outlive this.
  LedgerOps(Ops& inner, StepLedger& ledger) : inner_(inner), ledger_(ledger) {}

  void zero(Tensor x) override;
  void copy(Tensor y, Tensor x) override;
  void add(Tensor y, Tensor a, Tensor b) override;

  void linear(Tensor y, Tensor x, Tensor w, Tensor bias) override;
  void linear_dx(Tensor dx, Tensor dy, Tensor w) override;
  void linear_dw(Tensor dw, Tensor dy, Tensor x, Write write) override;
  void bias_grad(Tensor db, Tensor dy, Write write) override;
  void weights_changed() override { inner_.weights_changed(); }
  std::size_t packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const override {
    return inner_.packed_weight_bytes(n, k, dtype);
  }

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
  struct Counted {
    OpClass op_class;
    double flops, bytes;
  };
  template <class Call>
  void charge(const Counted& counted, const Call& call) {
    const std::int64_t begin_ns = ledger_.now();
    call();
    ledger_.op(counted.op_class, begin_ns, ledger_.now(), counted.flops, counted.bytes);
  }

  Ops& inner_;
  StepLedger& ledger_;
};

}  // namespace drivetrain
