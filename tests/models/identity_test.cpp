// The identities of docs/numerics.md: how a model is cut, recomputed or reduced must not change what it learns.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/harness.h"

namespace drivetrain::testing {
namespace {

constexpr double kTolerance = 1e-5;

struct Named {
  const char* name;
  ModelConfig config;
};
void PrintTo(const Named& n, std::ostream* out) {
  *out << n.name;
}

class Identity : public ::testing::TestWithParam<Named> {
 protected:
  RunSpec spec() const {
    RunSpec s;
    s.config = GetParam().config;
    s.documents = 2;
    s.ignored = 0.2;
    return s;
  }
};

TEST_P(Identity, LossFalls) {
  RunSpec s = spec();
  s.ignored = 0;
  s.steps = 10;
  const RunResult r = train(s);
  EXPECT_NEAR(r.losses.front(), std::log(97.0), 0.5);
  for (double x : r.losses) EXPECT_TRUE(std::isfinite(x));
}

TEST_P(Identity, TensorParallel) {
  for (const int tp : {2, 3, 4}) {
    if (GetParam().config.kv_heads < tp) continue;
    for (const auto residual : {TensorParallel::Residual::kReplicated, TensorParallel::Residual::kSharded}) {
      RunSpec s = spec();
      s.tp = tp;
      s.residual = residual;
      s.seq = tp == 3 ? 18 : s.seq;
      const RunResult one = train([&] {
        RunSpec whole = s;
        whole.tp = 1;
        return whole;
      }());
      EXPECT_LT(relative_difference(one, train(s)), kTolerance) << "tp " << tp << " residual " << int(residual);
    }
  }
}

TEST_P(Identity, DataParallelEqualsAccumulation) {
  const RunResult one = train(spec());
  for (const auto shard : {StoreOptions::Shard::kOff, StoreOptions::Shard::kOptimizer}) {
    RunSpec s = spec();
    s.dp = 2;
    s.shard = shard;
    EXPECT_LT(relative_difference(one, train(s)), kTolerance) << "shard " << int(shard);
  }
  RunSpec wide = spec();
  wide.micro = 4;
  EXPECT_LT(relative_difference(one, train(wide)), kTolerance);
  RunSpec both = spec();
  both.dp = both.tp = 2;
  EXPECT_LT(relative_difference(one, train(both)), kTolerance);
}

TEST_P(Identity, BucketSizeAndLogitsChunk) {
  const RunResult one = train(spec());
  RunSpec s = spec();
  s.dp = 2;
  s.bucket_bytes = 1 << 30;
  EXPECT_LT(relative_difference(one, train(s)), kTolerance);
  s.bucket_bytes = 1;
  s.logits_chunk_bytes = 1;
  EXPECT_LT(relative_difference(one, train(s)), kTolerance);
}

TEST_P(Identity, RecomputeIsBitForBit) {
  for (const int tp : {1, 2}) {
    for (const DType compute : {DType::kF32, DType::kBF16}) {
      RunSpec s = spec();
      s.tp = tp;
      s.compute = compute;
      s.steps = 4;
      s.config.embed_dropout = s.config.attention_dropout = s.config.residual_dropout = 0.1;
      const RunResult none = train(s);
      std::size_t last_peak = none.arena_peak_bytes;
      for (const Recompute recompute : {Recompute::kSelective, Recompute::kFull}) {
        s.recompute = recompute;
        const RunResult r = train(s);
        EXPECT_EQ(none.losses, r.losses);
        EXPECT_EQ(none.norms, r.norms);
        EXPECT_EQ(none.master, r.master);
        EXPECT_LT(r.arena_peak_bytes, last_peak);
        last_peak = r.arena_peak_bytes;
      }
    }
  }
}

TEST_P(Identity, CollectivesInTheBackgroundChangeNoBit) {
  for (const auto& [dp, tp] : {std::pair{2, 1}, {1, 2}, {2, 2}})
    for (const auto shard : {StoreOptions::Shard::kOff, StoreOptions::Shard::kOptimizer}) {
      RunSpec s = spec();
      s.dp = dp;
      s.tp = tp;
      s.shard = shard;
      s.bucket_bytes = 4 << 10;  // several reductions in flight
      s.steps = 4;
      const RunResult blocking = train(s);
      s.progress = true;
      const RunResult background = train(s);
      EXPECT_EQ(blocking.losses, background.losses);
      EXPECT_EQ(blocking.norms, background.norms);
      EXPECT_EQ(blocking.master, background.master);
    }
}

TEST_P(Identity, DropoutDoesNotDependOnTheLayout) {
  RunSpec s = spec();
  s.config.embed_dropout = s.config.attention_dropout = s.config.residual_dropout = 0.1;
  const RunResult one = train(s);
  RunSpec plain = spec();
  EXPECT_GT(relative_difference(one, train(plain)), 1e-3);
  s.tp = 2;
  EXPECT_LT(relative_difference(one, train(s)), kTolerance);
  s.tp = 1;
  s.dp = 2;
  EXPECT_LT(relative_difference(one, train(s)), kTolerance);
}

TEST_P(Identity, SameCommandTwice) {
  RunSpec s = spec();
  s.dp = 2;
  s.compute = DType::kBF16;
  const RunResult a = train(s), b = train(s);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
  s.seed = 8;
  EXPECT_NE(a.losses, train(s).losses);
}

INSTANTIATE_TEST_SUITE_P(Families, Identity,
                         ::testing::Values(Named{"llama", tiny_llama()}, Named{"qwen2", tiny_qwen2()},
                                           Named{"gpt2", tiny_gpt2()}, Named{"uneven", uneven_llama()}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace drivetrain::testing
