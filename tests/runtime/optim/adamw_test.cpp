#include "runtime/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/plan_device.h"
#include "runtime/grad_reducer.h"
#include "tests/runtime/test_parameters.h"
#include "tests/runtime/thread_mesh.h"

namespace drivetrain {
namespace {

using test::matrix;
using test::with_ranks;
using Shard = StoreOptions::Shard;

void fill_grad(const Parameter& p, float x) {
  for (float& g : p.grad.span<float>()) g = x;
}
void write_all(ParamStore& store, const Parameter& p, float x) {
  store.write(p, std::vector<float>(static_cast<std::size_t>(p.value.count()), x));
}
std::vector<float> master_of(ParamStore& store, const Parameter& p) {
  std::vector<float> out(static_cast<std::size_t>(p.value.count()));
  store.read_master(p, out);
  return out;
}

// TR-10: 3-4-5. The bug that counts the replicated one tp times gives 5.83.
TEST(AdamWNorm, ReplicatedGradientsCountOnceUnderTensorParallelism) {
  for (const auto& [dp, shard] : {std::pair{1, Shard::kOptimizer}, {2, Shard::kOff}, {2, Shard::kOptimizer}}) {
    with_ranks({dp, 2}, [shard = shard](Device& device, Mesh& mesh) {
      Parameter cut = matrix("cut", 4, 4, Split::kRows), whole = matrix("whole", 3, 3);
      ParamStore store;
      store.add(cut);
      store.add(whole);
      store.materialize(device, mesh, {DType::kF32, shard, 1024});
      fill_grad(cut, 1);    // 16 elements in all: norm 4
      fill_grad(whole, 1);  // 9 elements: norm 3
      AdamW adamw(device, store, mesh, {.clip = 0});
      EXPECT_EQ(adamw.step(0, 1).grad_norm, 5.0);
    });
  }
}

TEST(AdamWNorm, PaddingBetweenParametersNeverCounts) {
  with_ranks({2, 1}, [](Device& device, Mesh& mesh) {
    Parameter a = matrix("a", 3, 3), b = matrix("b", 4, 4);
    ParamStore store;
    store.add(a);
    store.add(b);
    store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 4096});
    for (float& g : store.grads().span<float>()) g = std::numeric_limits<float>::quiet_NaN();
    fill_grad(a, 1);
    fill_grad(b, 1);
    AdamW adamw(device, store, mesh, {});
    const StepResult r = adamw.step(0.1, 1);
    EXPECT_EQ(r.grad_norm, 5.0);
    EXPECT_FALSE(r.skipped);
  });
}

TEST(AdamWNorm, IsTakenAfterUnscalingAndBeforeClipping) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Parameter p = matrix("p", 2, 2);
    ParamStore store;
    store.add(p);
    store.materialize(device, mesh, {DType::kF32, Shard::kOptimizer, 4096});
    fill_grad(p, 1024);
    AdamW adamw(device, store, mesh, {.clip = 0.5});
    EXPECT_EQ(adamw.step(0, 1.0 / 1024).grad_norm, 2.0);
  });
}

// TR-12
TEST(AdamW, ZeroGradientsGiveNormZeroAndNoNaN) {
  with_ranks({2, 1}, [](Device& device, Mesh& mesh) {
    Parameter p = matrix("p", 5, 5);
    ParamStore store;
    store.add(p);
    store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 4096});
    write_all(store, p, 2);
    AdamW adamw(device, store, mesh, {.weight_decay = 0, .clip = 1});
    const StepResult r = adamw.step(0.1, 1);
    EXPECT_EQ(r.grad_norm, 0.0);
    EXPECT_FALSE(r.skipped);
    for (const float x : master_of(store, p)) EXPECT_EQ(x, 2);
  });
}

// TR-15
TEST(AdamW, WorksWithoutTrainedParameters) {
  with_ranks({2, 2}, [](Device& device, Mesh& mesh) {
    Parameter p = matrix("base", 4, 4);
    p.trainable = false;
    ParamStore store;
    store.add(p);
    store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 4096});
    write_all(store, p, 1.5);
    AdamW adamw(device, store, mesh, {});
    EXPECT_EQ(adamw.step(0.1, 1).grad_norm, 0.0);
    EXPECT_TRUE(adamw.state().empty());
    EXPECT_EQ(master_of(store, p)[0], 1.5f);
  });
}

// TR-16: one rank's slice overflows, all ranks skip, nothing changes.
TEST(AdamW, ANonFiniteGradientOnOneRankSkipsTheStepOnAll) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    with_ranks({2, 1}, [bad](Device& device, Mesh& mesh) {
      Parameter p = matrix("p", 16, 16);
      ParamStore store;
      store.add(p);
      store.materialize(device, mesh, {DType::kF16, Shard::kOptimizer, 4096});
      write_all(store, p, 1);
      AdamW adamw(device, store, mesh, {});
      fill_grad(p, 1);
      adamw.step(0.01, 1);
      const auto before = master_of(store, p);
      if (mesh.dp_rank() == 1) p.grad.as<float>()[255] = bad;
      EXPECT_TRUE(adamw.step(0.01, 1).skipped);
      EXPECT_EQ(adamw.updates(), 1);
      EXPECT_EQ(master_of(store, p), before);
      fill_grad(p, 1);
      EXPECT_FALSE(adamw.step(0.01, 1).skipped);
      EXPECT_EQ(adamw.updates(), 2);
    });
  }
}

// TR-18
TEST(AdamW, MasterMovesWhereTheBf16WeightCannot) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Parameter p = test::vector("norm", 8);
    ParamStore store;
    store.add(p);
    store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 4096});
    write_all(store, p, 1);
    AdamW adamw(device, store, mesh, {.eps = 1e-12, .clip = 0});
    for (int i = 0; i < 10; ++i) {
      fill_grad(p, 1);
      adamw.step(1e-3, 1);
    }
    EXPECT_NEAR(master_of(store, p)[0], 0.99, 1e-6);
    EXPECT_EQ(static_cast<float>(p.value.as<bf16>()[0]), 0.98828125f);
  });
}

// TR-20
TEST(AdamW, DecayReachesMatricesOnly) {
  with_ranks({2, 1}, [](Device& device, Mesh& mesh) {
    std::vector<std::vector<float>> matrices, norms;
    for (const double decay : {0.0, 0.1}) {
      Parameter w = matrix("w", 8, 8), norm = test::vector("norm", 8), bias = test::vector("bias", 100);
      ParamStore store;
      for (Parameter* p : {&w, &norm, &bias}) store.add(*p);
      store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 1 << 20});
      for (Parameter* p : {&w, &norm, &bias}) {
        write_all(store, *p, 0.5);
        fill_grad(*p, 0.25);
      }
      AdamW adamw(device, store, mesh, {.weight_decay = decay, .clip = 0});
      adamw.step(0.125, 1);
      matrices.push_back(master_of(store, w));
      norms.push_back(master_of(store, norm));
      norms.push_back(master_of(store, bias));
    }
    EXPECT_EQ(norms[0], norms[2]);
    EXPECT_EQ(norms[1], norms[3]);
    for (std::size_t i = 0; i < matrices[0].size(); ++i)
      EXPECT_NEAR(matrices[0][i] - matrices[1][i], 0.125 * 0.1 * 0.5, 1e-7);
  });
}

// Five updates against the formula in double (Loshchilov and Hutter 2019, in the order of torch.optim.AdamW).
TEST(AdamW, FollowsTheFormulaWithClipping) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Parameter p = matrix("p", 1, 1);
    ParamStore store;
    store.add(p);
    store.materialize(device, mesh, {DType::kF32, Shard::kOptimizer, 4096});
    write_all(store, p, 0.75);
    const AdamWOptions o{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1.0};
    AdamW adamw(device, store, mesh, o);
    double w = 0.75, m = 0, v = 0;
    const double gradients[] = {0.5, -4, 2, 0.25, -0.125};
    for (int t = 1; t <= 5; ++t) {
      double g = gradients[t - 1];
      fill_grad(p, static_cast<float>(g));
      const double lr = 0.01 * t;
      EXPECT_NEAR(adamw.step(lr, 1).grad_norm, std::abs(g), 1e-12);
      g *= std::min(1.0, 1.0 / (std::abs(g) + 1e-6));
      w *= 1 - lr * 0.1;
      m = 0.9 * m + 0.1 * g;
      v = 0.95 * v + 0.05 * g * g;
      w -= lr / (1 - std::pow(0.9, t)) * m / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-8);
      EXPECT_NEAR(p.value.as<float>()[0], w, 2e-6) << t;
    }
  });
}

// Sharding and bucket size are layout, not arithmetic.
TEST(AdamW, ShardsAndBucketsDoNotChangeAnyBit) {
  const auto train = [](MeshShape shape, Shard shard, std::size_t bucket_elements) {
    std::vector<float> out;
    with_ranks(shape, [&](Device& device, Mesh& mesh) {
      std::vector<Parameter> table{matrix("a", 33, 7), test::vector("b", 65), matrix("c", 5, 64),
                                   test::vector("d", 3)};
      ParamStore store;
      for (Parameter& p : table) store.add(p);
      store.materialize(device, mesh, {DType::kBF16, shard, bucket_elements * sizeof(float)});
      for (Parameter& p : table) write_all(store, p, 0.3f);
      AdamW adamw(device, store, mesh, {.clip = 0.5});
      for (int step = 0; step < 4; ++step) {
        for (Parameter& p : table)
          for (std::int64_t i = 0; i < p.grad.count(); ++i)
            p.grad.as<float>()[i] = static_cast<float>((i * 37 + step * 11) % 64 - 30) / 128;
        adamw.step(0.01, 1);
      }
      std::vector<float> all;
      for (Parameter& p : table) {
        const auto part = master_of(store, p);
        all.insert(all.end(), part.begin(), part.end());
        for (const bf16 x : p.value.span<bf16>()) all.push_back(static_cast<float>(x));
      }
      if (mesh.world().rank() == 0) out = all;
    });
    return out;
  };
  const auto reference = train({1, 1}, Shard::kOff, 1000000);
  for (const int dp : {1, 2, 3})
    for (const Shard shard : {Shard::kOff, Shard::kOptimizer})
      for (const std::size_t bucket : {std::size_t{1}, std::size_t{200}, std::size_t{1000000}})
        EXPECT_EQ(train({dp, 1}, shard, bucket), reference) << dp << " " << bucket;
}

// Nothing but ops and transfers may touch device memory: addresses of the plan device fault when touched.
TEST(AdamW, RunsOnMemoryThatTheHostCannotReach) {
  auto device = make_plan_device(nullptr);
  auto mesh = test::plan_mesh(2, 2, 1, 1);
  Parameter w = matrix("w", 64, 64, Split::kRows), norm = test::vector("norm", 64);
  norm.tp_partial = true;
  ParamStore store;
  store.add(w);
  store.add(norm);
  store.materialize(*device, *mesh, {DType::kBF16, Shard::kOptimizer, 4096});
  write_all(store, w, 1);
  GradReducer reducer(store, *mesh, *device, DType::kBF16);
  AdamW adamw(*device, store, *mesh, {});
  reducer.begin_step();
  reducer.begin_micro(GradReducer::Micro::kLast);
  for (const Parameter* p : {&w, &norm}) {
    reducer.write_mode(*p);
    reducer.ready(*p);
  }
  reducer.finish();
  EXPECT_EQ(adamw.step(0.1, 1).grad_norm, 0);
  EXPECT_EQ(master_of(store, w).size(), 32u * 64u);
}

}  // namespace
}  // namespace drivetrain
