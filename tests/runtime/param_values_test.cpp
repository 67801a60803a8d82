// Values in and out of the store, and the comparison of replicas, on real memory.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "runtime/param_store.h"
#include "runtime/replica_check.h"
#include "tests/runtime/test_parameters.h"
#include "tests/runtime/thread_mesh.h"

namespace drivetrain {
namespace {

using test::matrix;
using test::with_ranks;
using Shard = StoreOptions::Shard;

TEST(ParamStoreValues, MastersAreExactAndValuesRounded) {
  for (const DType compute : {DType::kF32, DType::kBF16, DType::kF16})
    for (const Shard shard : {Shard::kOff, Shard::kOptimizer})
      with_ranks({3, 1}, [&](Device& device, Mesh& mesh) {
        Parameter a = matrix("a", 50, 11), frozen = matrix("frozen", 7, 3), b = test::vector("b", 1000);
        frozen.trainable = false;
        ParamStore store;
        for (Parameter* p : {&a, &frozen, &b}) store.add(*p);
        store.materialize(device, mesh, {compute, shard, 2048});
        for (Parameter* p : {&a, &frozen, &b}) {
          std::vector<float> in(static_cast<std::size_t>(p->value.count())), out(in.size());
          std::iota(in.begin(), in.end(), 1.0f);
          for (float& x : in) x = 1 / x;
          in[3] = -0.0f;
          store.write(*p, in);
          store.read_master(*p, out);
          for (std::size_t i = 0; i < in.size(); ++i) {
            float value = in[i];
            if (compute == DType::kBF16) value = static_cast<float>(p->value.as<bf16>()[i]);
            if (compute == DType::kF16) value = static_cast<float>(p->value.as<f16>()[i]);
            const float rounded = compute == DType::kBF16  ? static_cast<float>(bf16(in[i]))
                                  : compute == DType::kF16 ? static_cast<float>(f16(in[i]))
                                                           : in[i];
            ASSERT_EQ(value, rounded) << p->name << " " << i;
            ASSERT_EQ(out[i], p->trainable ? in[i] : value) << p->name << " " << i;
          }
          EXPECT_TRUE(std::signbit(out[3]));
        }
      });
}

TEST(ParamStoreValues, ShardsComeBackAsTheyWereScattered) {
  with_ranks({2, 2}, [](Device& device, Mesh& mesh) {
    Parameter a = matrix("a", 30, 20, Split::kCols), b = test::vector("b", 10);
    ParamStore store;
    store.add(a);
    store.add(b);
    store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 1 << 20});
    const Buffer moments(device, static_cast<std::size_t>(store.shard_count()) * sizeof(float));
    std::vector<float> in(300), out(300);
    std::iota(in.begin(), in.end(), 0.5f);
    store.scatter_shards(a, moments.tensor(DType::kF32), in);
    store.gather_shards(a, moments.tensor(DType::kF32), out);
    EXPECT_EQ(in, out);
  });
}

TEST(ParamStoreValues, RefusesAnotherSize) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Parameter a = matrix("a", 2, 3);
    ParamStore store;
    store.add(a);
    store.materialize(device, mesh, {});
    std::vector<float> five(5);
    EXPECT_THROW(store.write(a, five), Error);
    EXPECT_THROW(store.read_master(a, five), Error);
  });
}

// TR-27
TEST(ReplicaCheck, AcceptsEqualRanksAndFindsAPlantedDifference) {
  enum class Plant { kNothing, kOtherDataRank, kOtherTensorRank };
  for (const Plant plant : {Plant::kNothing, Plant::kOtherDataRank, Plant::kOtherTensorRank})
    with_ranks({2, 2}, [plant](Device& device, Mesh& mesh) {
      Parameter cut = matrix("cut", 8, 8, Split::kRows), whole = test::vector("whole", 65);
      ParamStore store;
      store.add(cut);
      store.add(whole);
      store.materialize(device, mesh, {DType::kBF16, Shard::kOptimizer, 4096});
      // Cut parameters differ over tensor ranks, as they should.
      store.write(cut, std::vector<float>(32, static_cast<float>(1 + mesh.tp_rank())));
      std::vector<float> values(65, 1);
      if (plant == Plant::kOtherDataRank && mesh.world().rank() == 2) values[64] = 1.0078125f;
      if (plant == Plant::kOtherTensorRank && mesh.tp_rank() == 1) values[0] = -1;
      store.write(whole, values);
      if (plant == Plant::kNothing) {
        EXPECT_NO_THROW(check_replicas(device, store, mesh));
        return;
      }
      try {
        check_replicas(device, store, mesh);
        ADD_FAILURE() << "rank " << mesh.world().rank() << " did not notice";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("whole"), std::string::npos) << e.what();
      }
    });
}

}  // namespace
}  // namespace drivetrain
