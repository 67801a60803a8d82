#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/parallel.h"
#include "tests/kernels/cpu/attention_reference.h"
#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::cpu {
namespace {

using testing::Host;

struct Case {
  const char* name;
  DType dtype;
  AttentionShape s;
  std::vector<std::int64_t> documents;  // starts inside every sequence
  float dropout;
  int threads;
};

// One call with all its tensors and the reference's answer.
struct Trial {
  explicit Trial(const Case& c)
      : s(c.s),
        dropout{c.dropout, 0x123456789abcull, 7},
        qkv(Host::random(c.dtype, {s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}, 1, -2, 2)),
        dy(Host::random(c.dtype, {s.batch * s.seq, s.heads * s.head_dim}, 2)),
        y(c.dtype, {s.batch * s.seq, s.heads * s.head_dim}),
        lse(DType::kF32, {s.batch, s.heads, s.seq}),
        delta(DType::kF32, {s.batch, s.heads, s.seq}),
        dqkv(c.dtype, {s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}),
        doc_starts(DType::kI32, {s.batch, s.seq}),
        row_keys(DType::kI64, {s.batch * s.seq}) {
    for (std::int64_t m = 0; m < s.batch * s.seq; ++m) {
      std::int64_t start = 0;
      for (const std::int64_t d : c.documents)
        if (d <= m % s.seq) start = d;
      doc_starts.put(m, static_cast<double>(start));
      row_keys.put(m, static_cast<double>(1000 * m + (std::int64_t{1} << 33)));
    }
    reference = {s,  qkv.values(), dy.values(), doc_starts.values(), row_keys.values(), dropout, kHeadBegin,
                 {}, {},           {}};
    reference.run();
  }

  void forward(Attention& attention) { attention.forward(y, lse, qkv, doc_starts, row_keys, s, dropout, kHeadBegin); }
  void backward(Attention& attention) {
    attention.backward(dqkv, delta, dy, y, lse, qkv, doc_starts, row_keys, s, dropout, kHeadBegin);
  }

  static constexpr std::int64_t kHeadBegin = 3;
  AttentionShape s;
  Dropout dropout;
  Host qkv, dy, y, lse, delta, dqkv, doc_starts, row_keys;
  testing::ReferenceAttention reference;
};

class AttentionTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { use_threads(GetParam().threads); }
  void TearDown() override { use_threads(1); }
  HostPool pool_;
  Attention attention_{pool_};
};

double largest(const std::vector<double>& x) {
  double max = 0;
  for (const double xi : x) max = std::max(max, std::abs(xi));
  return max;
}

// The error allowed, relative to the largest element: f32 sums, and for bf16 probabilities rounded to bf16.
double relative(DType t) {
  return t == DType::kF32 ? 3e-6 : t == DType::kBF16 ? 8e-3 : 1e-3;
}

TEST_P(AttentionTest, MatchesDoubles) {
  Trial trial(GetParam());
  trial.forward(attention_);
  testing::expect_close(trial.y, trial.reference.y, 1, relative(GetParam().dtype) * largest(trial.reference.y));
  testing::expect_close(trial.lse, trial.reference.lse, 8, 1e-5);
  trial.backward(attention_);
  testing::expect_close(trial.dqkv, trial.reference.dqkv, 1,
                        relative(GetParam().dtype) * largest(trial.reference.dqkv));
}

TEST_P(AttentionTest, ThreadsDoNotChangeABit) {
  Trial trial(GetParam());
  testing::expect_same_with_threads([&] {
    trial.forward(attention_);
    trial.backward(attention_);
    return trial.dqkv;
  });
}

AttentionShape shape(std::int64_t batch, std::int64_t seq, std::int64_t heads, std::int64_t kv_heads,
                     std::int64_t dim, std::int64_t window = 0) {
  return {batch, seq, heads, kv_heads, dim, 1 / std::sqrt(static_cast<float>(dim)), window};
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16}) {
    out.push_back({"one", t, shape(1, 1, 1, 1, 1), {0}, 0, 1});
    out.push_back({"ragged", t, shape(2, 17, 3, 3, 5), {0}, 0, 2});
    out.push_back({"odd_dim", t, shape(1, 101, 2, 1, 17), {0}, 0, 1});
    out.push_back({"two_blocks", t, shape(1, 130, 2, 2, 64), {0}, 0, 2});
    out.push_back({"long", t, shape(1, 431, 1, 1, 32), {0}, 0, 1});
    out.push_back({"gqa", t, shape(2, 65, 6, 2, 16), {0}, 0, 2});
    out.push_back({"wide_head", t, shape(1, 50, 1, 1, 100), {0}, 0, 1});
    out.push_back({"documents", t, shape(1, 300, 2, 2, 24), {0, 1, 7, 100, 203, 299}, 0, 1});
    out.push_back({"window", t, shape(1, 250, 2, 1, 16, 19), {0}, 0, 1});
    out.push_back({"window_and_documents", t, shape(2, 250, 2, 1, 16, 100), {0, 48, 160}, 0, 2});
    out.push_back({"dropout", t, shape(1, 100, 4, 2, 16), {0, 37}, 0.25f, 2});
    out.push_back({"dropout_odd", t, shape(1, 223, 1, 1, 33), {0}, 0.5f, 1});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Cases, AttentionTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  return std::string(test.param.name) + "_" + name(test.param.dtype);
});

TEST(Attention, LargeScoresDoNotOverflow) {
  HostPool pool;
  Attention attention(pool);
  Trial trial({"", DType::kF32, shape(1, 40, 1, 1, 8), {0}, 0, 1});
  for (std::int64_t i = 0; i < trial.qkv.count(); ++i) trial.qkv.put(i, 100 * trial.qkv.at(i));
  trial.reference.qkv = trial.qkv.values();
  trial.reference.run();
  trial.forward(attention);
  testing::expect_close(trial.y, trial.reference.y, 4, 1e-2);
}

TEST(Attention, DecodeEqualsTheLastRowOfForward) {
  HostPool pool;
  Attention attention(pool);
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16})
    for (const std::int64_t window : {0, 5}) {
      const AttentionShape s = shape(2, 23, 4, 2, 18, window);
      Trial trial({"", t, s, {0}, 0, 1});
      trial.forward(attention);
      Host cache(t, {2, 2, 40, s.kv_heads * s.head_dim});
      kv_store(cache, trial.qkv, s, 0);
      const std::int64_t columns = (s.heads + 2 * s.kv_heads) * s.head_dim, width = s.heads * s.head_dim;
      Host last(t, {2, columns}), y(t, {2, width});
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t c = 0; c < columns; ++c)
          last.put(b * columns + c, trial.qkv.at((b * s.seq + s.seq - 1) * columns + c));
      AttentionShape one = s;
      one.seq = 1;
      attention.decode(y, last, cache, one, s.seq - 1);
      for (std::int64_t b = 0; b < 2; ++b)
        for (std::int64_t c = 0; c < width; ++c)
          ASSERT_NEAR(y.at(b * width + c),
                      trial.reference.y[static_cast<std::size_t>((b * s.seq + s.seq - 1) * width + c)],
                      relative(t) * 2);
    }
}

TEST(Attention, RefusesWhatDoesNotFit) {
  HostPool pool;
  Attention attention(pool);
  Trial trial({"", DType::kF32, shape(1, 8, 2, 1, 4), {0}, 0, 1});
  trial.s.heads = 3;
  EXPECT_THROW(trial.forward(attention), Error);
  trial.s.heads = 2;
  trial.doc_starts.put(3, 4);
  EXPECT_THROW(trial.forward(attention), Error);
}

}  // namespace
}  // namespace drivetrain::cpu
