#include "runtime/ledger/ledger_ops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace drivetrain {
namespace {

// Writes down which op was called with which tensors.
class NotingOps final : public Ops {
 public:
  std::string called;
  std::vector<std::int64_t> tensors;  // their addresses, as small numbers

  void zero(Tensor x) override { note("zero", x); }
  void copy(Tensor y, Tensor x) override { note("copy", y, x); }
  void add(Tensor y, Tensor a, Tensor b) override { note("add", y, a, b); }
  void linear(Tensor y, Tensor x, Tensor w, Tensor bias) override { note("linear", y, x, w, bias); }
  void linear_dx(Tensor dx, Tensor dy, Tensor w) override { note("linear_dx", dx, dy, w); }
  void linear_dw(Tensor dw, Tensor dy, Tensor x, Write) override { note("linear_dw", dw, dy, x); }
  void bias_grad(Tensor db, Tensor dy, Write) override { note("bias_grad", db, dy); }
  void weights_changed() override { note("weights_changed"); }
  std::size_t packed_weight_bytes(std::int64_t n, std::int64_t k, DType) const override {
    return static_cast<std::size_t>(10 * n + k);
  }
  void embedding(Tensor y, Tensor ids, Tensor table, std::int64_t, Write) override {
    note("embedding", y, ids, table);
  }
  void embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t, Write) override {
    note("embedding_grad", dtable, ids, dy);
  }
  void rms_norm(Tensor y, Tensor r, Tensor sum, Tensor x, Tensor d, Tensor w, float) override {
    note("rms_norm", y, r, sum, x, d, w);
  }
  void rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor r, Write) override {
    note("rms_norm_grad", dx, dw, dy, x, w, r);
  }
  void layer_norm(Tensor y, Tensor m, Tensor s, Tensor sum, Tensor x, Tensor d, Tensor w, Tensor b, float) override {
    note("layer_norm", y, m, s, sum, x, d, w, b);
  }
  void layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor m, Tensor s,
                       Write) override {
    note("layer_norm_grad", dx, dw, db, dy, x, w, m, s);
  }
  void gelu(Tensor y, Tensor x) override { note("gelu", y, x); }
  void gelu_grad(Tensor dx, Tensor dy, Tensor x) override { note("gelu_grad", dx, dy, x); }
  void swiglu(Tensor y, Tensor x) override { note("swiglu", y, x); }
  void swiglu_grad(Tensor dx, Tensor dy, Tensor x) override { note("swiglu_grad", dx, dy, x); }
  void dropout(Tensor y, Tensor x, Tensor keys, Dropout) override { note("dropout", y, x, keys); }
  void rope(Tensor qkv, Tensor p, Tensor cos, Tensor sin, const AttentionShape&) override {
    note("rope", qkv, p, cos, sin);
  }
  void rope_grad(Tensor qkv, Tensor p, Tensor cos, Tensor sin, const AttentionShape&) override {
    note("rope_grad", qkv, p, cos, sin);
  }
  void attention(Tensor y, Tensor lse, Tensor qkv, Tensor docs, Tensor keys, const AttentionShape&, Dropout,
                 std::int64_t) override {
    note("attention", y, lse, qkv, docs, keys);
  }
  void attention_grad(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv, Tensor docs,
                      Tensor keys, const AttentionShape&, Dropout, std::int64_t) override {
    note("attention_grad", dqkv, delta, dy, y, lse, qkv, docs, keys);
  }
  void kv_store(Tensor cache, Tensor qkv, const AttentionShape&, std::int64_t) override {
    note("kv_store", cache, qkv);
  }
  void attention_decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape&, std::int64_t) override {
    note("attention_decode", y, qkv, cache);
  }
  void loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice) override {
    note("loss_stats", stats, logits, targets);
  }
  void loss_sum(Tensor sum, Tensor stats, Tensor targets) override { note("loss_sum", sum, stats, targets); }
  void loss_grad(Tensor logits, Tensor stats, Tensor targets, VocabSlice, float) override {
    note("loss_grad", logits, stats, targets);
  }
  void sum_squares(Tensor out, Tensor x) override { note("sum_squares", out, x); }
  void adamw(Tensor master, Tensor m, Tensor v, Tensor value, Tensor grad, const AdamWArgs&) override {
    note("adamw", master, m, v, value, grad);
  }

 private:
  template <class... T>
  void note(const char* op, const T&... t) {
    called = op;
    tensors = {reinterpret_cast<std::intptr_t>(t.data)...};
  }
};

// Tensors that nobody touches: number n lies at address n.
Tensor at(std::int64_t n, DType dtype = DType::kF32) {
  return Tensor(reinterpret_cast<void*>(n), dtype, {2, 2});  // NOLINT: an address that nobody dereferences
}

constexpr AttentionShape kShape{1, 8, 4, 2, 4, 1.0f};

TEST(LedgerOps, HandsEveryOpOn) {
  NotingOps inner;
  StepLedger ledger;
  LedgerOps ops(inner, ledger);
  const Write w = Write::kOverwrite;
  const auto expect = [&](const char* op, std::int64_t tensors) {
    EXPECT_EQ(inner.called, op);
    std::vector<std::int64_t> counted;
    for (std::int64_t n = 1; n <= tensors; ++n) counted.push_back(n);
    EXPECT_EQ(inner.tensors, counted) << op;
  };
  const Tensor a = at(1), b = at(2), c = at(3), d = at(4), e = at(5), f = at(6), g = at(7), h = at(8);
  ops.zero(a), expect("zero", 1);
  ops.copy(a, b), expect("copy", 2);
  ops.add(a, b, c), expect("add", 3);
  ops.linear(a, b, c, d), expect("linear", 4);
  ops.linear_dx(a, b, c), expect("linear_dx", 3);
  ops.linear_dw(a, b, c, w), expect("linear_dw", 3);
  ops.bias_grad(a, b, w), expect("bias_grad", 2);
  ops.weights_changed(), expect("weights_changed", 0);
  EXPECT_EQ(ops.packed_weight_bytes(4, 2, DType::kF32), 42u);
  ops.embedding(a, b, c, 0, w), expect("embedding", 3);
  ops.embedding_grad(a, b, c, 0, w), expect("embedding_grad", 3);
  ops.rms_norm(a, b, c, d, e, f, 0), expect("rms_norm", 6);
  ops.rms_norm_grad(a, b, c, d, e, f, w), expect("rms_norm_grad", 6);
  ops.layer_norm(a, b, c, d, e, f, g, h, 0), expect("layer_norm", 8);
  ops.layer_norm_grad(a, b, c, d, e, f, g, h, w), expect("layer_norm_grad", 8);
  ops.gelu(a, b), expect("gelu", 2);
  ops.gelu_grad(a, b, c), expect("gelu_grad", 3);
  ops.swiglu(a, b), expect("swiglu", 2);
  ops.swiglu_grad(a, b, c), expect("swiglu_grad", 3);
  ops.dropout(a, b, c, {}), expect("dropout", 3);
  ops.rope(a, b, c, d, kShape), expect("rope", 4);
  ops.rope_grad(a, b, c, d, kShape), expect("rope_grad", 4);
  ops.attention(a, b, c, d, e, kShape, {}, 0), expect("attention", 5);
  ops.attention_grad(a, b, c, d, e, f, g, h, kShape, {}, 0), expect("attention_grad", 8);
  ops.kv_store(a, b, kShape, 0), expect("kv_store", 2);
  ops.attention_decode(a, b, c, kShape, 3), expect("attention_decode", 3);
  ops.loss_stats(a, b, c, {}), expect("loss_stats", 3);
  ops.loss_sum(a, b, c), expect("loss_sum", 3);
  ops.loss_grad(a, b, c, {}, 1), expect("loss_grad", 3);
  ops.sum_squares(a, b), expect("sum_squares", 2);
  ops.adamw(a, b, c, d, e, {}), expect("adamw", 5);
}

class Counts : public testing::Test {
 protected:
  template <class Call>
  OpTotals of(OpClass c, const Call& call) {
    {
      const LedgerSpan span(&ledger_, Phase::kForward);
      call();
    }
    const StepRecord r = ledger_.end_step(1, 0);
    for (std::size_t i = 0; i < kOpClasses; ++i) EXPECT_EQ(r.ops[i].bytes > 0, i == static_cast<std::size_t>(c)) << i;
    EXPECT_EQ(ledger_.calls().ops, 1);
    return r.at(c);
  }
  static Tensor make(DType dtype, std::initializer_list<std::int64_t> dims) {
    return Tensor(reinterpret_cast<void*>(4096), dtype, dims);  // NOLINT
  }
  NotingOps inner_;
  StepLedger ledger_;
  LedgerOps ops_{inner_, ledger_};
};

TEST_F(Counts, MatrixProducts) {
  const Tensor x = make(DType::kBF16, {10, 4}), w = make(DType::kBF16, {6, 4}), y = make(DType::kBF16, {10, 6});
  const Tensor bias = make(DType::kBF16, {6}), dw = make(DType::kF32, {6, 4});
  OpTotals t = of(OpClass::kGemm, [&] { ops_.linear(y, x, w, bias); });
  EXPECT_EQ(t.flops, 2 * 10 * 6 * 4);
  EXPECT_EQ(t.bytes, 2 * (60 + 40 + 24 + 6));
  t = of(OpClass::kGemm, [&] { ops_.linear_dx(x, y, w); });
  EXPECT_EQ(t.flops, 2 * 10 * 6 * 4);
  EXPECT_EQ(t.bytes, 2 * (60 + 40 + 24));
  t = of(OpClass::kGemm, [&] { ops_.linear_dw(dw, y, x, Write::kOverwrite); });
  EXPECT_EQ(t.flops, 2 * 10 * 6 * 4);
  EXPECT_EQ(t.bytes, 4 * 24 + 2 * (60 + 40));
  t = of(OpClass::kGemm, [&] { ops_.linear_dw(dw, y, x, Write::kAccumulate); });
  EXPECT_EQ(t.bytes, 2 * 4 * 24 + 2 * (60 + 40));
}

TEST_F(Counts, AttentionIsTheCausalHalfOfTheBand) {
  AttentionShape s{3, 8, 4, 2, 16, 1.0f};
  const Tensor qkv = make(DType::kF32, {24, 128}), y = make(DType::kF32, {24, 64}),
               lse = make(DType::kF32, {3, 4, 8});
  const Tensor docs = make(DType::kI32, {3, 8});
  const auto forward = [&] { ops_.attention(y, lse, qkv, docs, Tensor(), s, {}, 0); };
  OpTotals t = of(OpClass::kAttention, forward);
  EXPECT_EQ(t.flops, 2 * 2 * 3 * 4 * 16 * (8 * 8 / 2));
  EXPECT_EQ(t.bytes, 4 * (24 * 128 + 24 * 64 + 96 + 24));
  s.window = 2;
  EXPECT_EQ(of(OpClass::kAttention, forward).flops, 2 * 2 * 3 * 4 * 16 * (2 * 8 - 2));
  s.window = 100;
  EXPECT_EQ(of(OpClass::kAttention, forward).flops, t.flops);
  EXPECT_EQ(
      of(OpClass::kAttention, [&] { ops_.attention_grad(qkv, lse, y, y, lse, qkv, docs, Tensor(), s, {}, 0); }).flops,
      t.flops * 5 / 2);
}

TEST_F(Counts, TheRestIsBoundByMemory) {
  const Tensor x = make(DType::kF32, {16, 16});
  EXPECT_EQ(of(OpClass::kPointwise, [&] { ops_.add(x, x, x); }).bytes, 3 * 1024);
  EXPECT_EQ(of(OpClass::kNorm, [&] { ops_.rms_norm(x, x, Tensor(), x, Tensor(), x, 0); }).bytes, 4 * 1024);
  EXPECT_EQ(of(OpClass::kOptimizer, [&] { ops_.adamw(x, x, x, Tensor(), x, {}); }).bytes, 7 * 1024);
  EXPECT_EQ(of(OpClass::kEmbeddingLoss, [&] { ops_.loss_grad(x, Tensor(), Tensor(), {}, 1); }).bytes, 2 * 1024);
}

}  // namespace
}  // namespace drivetrain
