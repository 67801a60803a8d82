#include "runtime/param_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/plan_device.h"
#include "tests/runtime/test_parameters.h"

namespace drivetrain {
namespace {

using test::matrix;
using test::plan_mesh;

struct Table {
  Parameter head = matrix("head", 100, 10, Split::kRows);
  Parameter norm = test::vector("norm", 10);
  Parameter up = matrix("up", 33, 8, Split::kCols);
  Parameter frozen = matrix("frozen", 3, 5);
  Table() {
    norm.tp_partial = true;
    frozen.trainable = false;
  }
  void add_to(ParamStore& store) {
    for (Parameter* p : {&head, &norm, &frozen, &up}) store.add(*p);
  }
};

StoreOptions small_buckets(std::size_t elements) {
  return {.compute = DType::kBF16, .bucket_bytes = elements * sizeof(float)};
}

TEST(ParamStoreLayout, PartialParametersAndFrozenOnesComeLast) {
  auto device = make_plan_device(nullptr);
  auto mesh = plan_mesh(2, 2, 1, 0);
  Table t;
  ParamStore store;
  t.add_to(store);
  store.materialize(*device, *mesh, small_buckets(1000));
  // head: 50 x 10 = 500 -> 512; up: 33 x 4 = 132 -> 192; together 704 -> 768 (a multiple of 2 x 64)
  EXPECT_EQ(t.head.flat_begin, 0);
  EXPECT_EQ(t.up.flat_begin, 512);
  ASSERT_EQ(store.buckets().size(), 2u);
  EXPECT_EQ(store.buckets()[0].count, 768);
  EXPECT_EQ(store.buckets()[1].begin, 768);
  EXPECT_EQ(store.buckets()[1].count, 128);
  EXPECT_TRUE(store.buckets()[1].tp_partial);
  EXPECT_EQ(t.norm.flat_begin, 768);
  EXPECT_EQ(t.frozen.flat_begin, 896);
  EXPECT_EQ(store.grads().count(), 896);
  EXPECT_EQ(store.values().count(), 896 + 64);
  EXPECT_EQ(store.shard_count(), 448);
  EXPECT_EQ(store.master().count(), 448);
  EXPECT_FALSE(t.frozen.grad.present());
  EXPECT_EQ(t.head.value.describe(), "bf16[50, 10]");
  EXPECT_EQ(t.head.grad.describe(), "f32[50, 10]");
  EXPECT_EQ(t.up.value.describe(), "bf16[33, 4]");
  EXPECT_EQ(t.norm.value.describe(), "bf16[10]");
  EXPECT_EQ(store.value_bytes(), 960 * 2u);
  EXPECT_EQ(store.grad_bytes(), 896 * 4u);
  EXPECT_EQ(store.master_bytes(), 448 * 4u);
}

TEST(ParamStoreLayout, EveryElementIsOwnedByExactlyOneShard) {
  for (const std::size_t elements : {1u, 64u, 300u, 100000u}) {
    for (const int dp : {1, 2, 3, 4, 7}) {
      auto device = make_plan_device(nullptr);
      auto mesh = plan_mesh(dp, 1, dp - 1, 0);
      Table t;
      ParamStore store;
      t.add_to(store);
      store.materialize(*device, *mesh, small_buckets(elements));
      std::vector<std::vector<int>> seen(static_cast<std::size_t>(dp),
                                         std::vector<int>(static_cast<std::size_t>(store.shard_count())));
      for (const Parameter* p : {&t.head, &t.norm, &t.up}) {
        std::int64_t next = 0;
        for (int shard = 0; shard < dp; ++shard) {
          const OwnedRange r = store.owned(*p, shard);
          if (r.count == 0) continue;
          EXPECT_EQ(r.begin, next);
          next = r.begin + r.count;
          for (std::int64_t i = 0; i < r.count; ++i)
            ++seen[static_cast<std::size_t>(shard)][static_cast<std::size_t>(r.shard_begin + i)];
        }
        EXPECT_EQ(next, p->value.count());
      }
      for (const auto& shard : seen)
        for (const int n : shard) EXPECT_LE(n, 1);
    }
  }
}

TEST(ParamStoreLayout, AnFp32StoreWithoutShardsKeepsNoSecondCopy) {
  auto device = make_plan_device(nullptr);
  auto mesh = plan_mesh(2, 1, 0, 0);
  Table t;
  ParamStore store;
  t.add_to(store);
  store.materialize(*device, *mesh, {.compute = DType::kF32, .shard = StoreOptions::Shard::kOff});
  EXPECT_EQ(store.master_bytes(), 0u);
  EXPECT_EQ(store.master().data, store.values().data);
  EXPECT_EQ(store.master().count(), store.grads().count());
}

// TR-15: nothing trained here; every size is zero and nothing is asked of the device for it.
TEST(ParamStoreLayout, AStoreWithoutTrainedParametersIsEmpty) {
  auto device = make_plan_device(nullptr);
  auto mesh = plan_mesh(2, 1, 0, 0);
  Parameter p = matrix("base", 4, 4);
  p.trainable = false;
  ParamStore store;
  store.add(p);
  store.materialize(*device, *mesh, {});
  EXPECT_TRUE(store.buckets().empty());
  EXPECT_EQ(store.grad_bytes() + store.master_bytes(), 0u);
  EXPECT_EQ(store.owned(p, 0).count, 0);
}

TEST(ParamStoreLayout, RefusesTheSameParameterTwiceAndLateOnes) {
  auto device = make_plan_device(nullptr);
  auto mesh = plan_mesh(1, 1, 0, 0);
  Parameter a = matrix("a", 2, 2), b = matrix("a", 2, 2), c = matrix("c", 2, 2);
  ParamStore store;
  store.add(a);
  EXPECT_THROW(store.add(a), Error);
  EXPECT_THROW(store.add(b), Error);
  store.materialize(*device, *mesh, {});
  EXPECT_THROW(store.add(c), Error);
  EXPECT_THROW(store.materialize(*device, *mesh, {}), Error);
}

}  // namespace
}  // namespace drivetrain
