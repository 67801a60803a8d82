#include "runtime/grad_reducer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/progress_comm.h"
#include "tests/runtime/comm/forwarding_comm.h"
#include "tests/runtime/test_parameters.h"
#include "tests/runtime/thread_mesh.h"

namespace drivetrain {
namespace {

using test::matrix;
using test::with_ranks;
using Micro = GradReducer::Micro;
using Shard = StoreOptions::Shard;

struct Table {
  std::vector<Parameter> parameters;
  ParamStore store;
  Table() {
    parameters = {matrix("head", 70, 3), test::vector("norm", 5), matrix("up", 9, 8), test::vector("bias", 130)};
    parameters[1].tp_partial = true;
  }
  void materialize(Device& device, Mesh& mesh, Shard shard, std::size_t bucket_elements) {
    for (Parameter& p : parameters) store.add(p);
    store.materialize(device, mesh, {DType::kF32, shard, bucket_elements * sizeof(float)});
  }
};

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kLogic);
    return e.what();
  }
  return "nothing thrown";
}

// Small integers, so that every sum is exact in f32 and bf16.
float gradient(int rank, std::int64_t element) {
  return static_cast<float>((element % 5) * (rank + 1));
}

struct Layout {
  int dp, tp;
  Shard shard;
  DType wire;
  std::size_t bucket_elements;
};

class GradReducerSum : public testing::TestWithParam<Layout> {};

TEST_P(GradReducerSum, EveryOwnedElementIsTheSumOverDataRanks) {
  const Layout layout = GetParam();
  with_ranks({layout.dp, layout.tp}, [&](Device& device, Mesh& mesh) {
    Table t;
    t.materialize(device, mesh, layout.shard, layout.bucket_elements);
    GradReducer reducer(t.store, mesh, device, layout.wire);
    for (int step = 0; step < 2; ++step) {
      reducer.begin_step();
      reducer.begin_micro(Micro::kLast);
      for (const Parameter& p : t.parameters) {
        EXPECT_EQ(reducer.write_mode(p), Write::kOverwrite);
        float* g = p.grad.as<float>();
        for (std::int64_t i = 0; i < p.grad.count(); ++i) g[i] = gradient(mesh.world().rank(), i);
        reducer.ready(p);
      }
      reducer.finish();
    }
    for (const Parameter& p : t.parameters) {
      const OwnedRange owned = t.store.owned(p, t.store.dp_shard());
      for (std::int64_t i = owned.begin; i < owned.begin + owned.count; ++i) {
        float want = 0;
        for (int rank = 0; rank < mesh.world().size(); ++rank)
          if (p.tp_partial || rank % layout.tp == mesh.tp_rank()) want += gradient(rank, i);
        ASSERT_EQ(p.grad.as<float>()[i], want) << p.name << " element " << i;
      }
    }
  });
}

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const auto& [dp, tp] : {std::pair{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}})
    for (const Shard shard : {Shard::kOff, Shard::kOptimizer})
      for (const DType wire : {DType::kF32, DType::kBF16})
        for (const std::size_t bucket : {std::size_t{1}, std::size_t{300}, std::size_t{1000000}})
          all.push_back({dp, tp, shard, wire, bucket});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Layouts, GradReducerSum, testing::ValuesIn(layouts()),
                         [](const testing::TestParamInfo<Layout>& row) {
                           const Layout& l = row.param;
                           return "dp" + std::to_string(l.dp) + "_tp" + std::to_string(l.tp) +
                                  (l.shard == Shard::kOff ? "_whole" : "_sharded") + "_" + name(l.wire) + "_bucket" +
                                  std::to_string(l.bucket_elements);
                         });

TEST(GradReducer, OnlyTheLastMicroBatchReduces) {
  with_ranks({2, 1}, [](Device& device, Mesh& mesh) {
    Table t;
    t.materialize(device, mesh, Shard::kOff, 1);
    GradReducer reducer(t.store, mesh, device, DType::kF32);
    reducer.begin_step();
    for (const Micro micro : {Micro::kEarlier, Micro::kLast}) {
      reducer.begin_micro(micro);
      for (const Parameter& p : t.parameters) {
        const Write mode = reducer.write_mode(p);
        EXPECT_EQ(mode, micro == Micro::kEarlier ? Write::kOverwrite : Write::kAccumulate);
        EXPECT_EQ(reducer.write_mode(p), Write::kAccumulate);
        float* g = p.grad.as<float>();
        *g = (mode == Write::kOverwrite ? 0 : *g) + static_cast<float>(mesh.dp_rank() + 1);
        reducer.ready(p);
        const bool reduced = micro == Micro::kLast && !p.tp_partial;
        const float local = static_cast<float>((mesh.dp_rank() + 1) * (micro == Micro::kLast ? 2 : 1));
        EXPECT_EQ(*g, reduced ? 6 : local) << p.name;
      }
    }
    reducer.finish();
    for (const Parameter& p : t.parameters) EXPECT_EQ(*p.grad.as<float>(), 6) << p.name;
  });
}

TEST(GradReducer, BucketsAreReducedInTheBackgroundWhileBackwardGoesOn) {
  run_thread_ranks(2, [](Communicator& world) {
    using Moment = test::ForwardingCommunicator::Moment;
    const auto backward = std::this_thread::get_id();
    std::atomic<int> begun_elsewhere{0}, reduced{0};
    const auto watch = [&](Moment moment) {
      if (moment == Moment::kAfter)
        ++reduced;
      else if (std::this_thread::get_id() != backward)
        ++begun_elsewhere;
    };
    auto dp = std::make_unique<test::ForwardingCommunicator>(world.split(0, world.rank()), watch);
    Mesh mesh({2, 1}, world.split(0, world.rank()), std::make_unique<ProgressCommunicator>(std::move(dp), 0),
              world.split(world.rank(), 0));
    const auto device = make_cpu_device(1);
    Table t;
    t.parameters[1].tp_partial = false;
    t.materialize(*device, mesh, Shard::kOff, 1);  // a bucket for each parameter
    GradReducer reducer(t.store, mesh, *device, DType::kF32);
    reducer.begin_step();
    reducer.begin_micro(Micro::kLast);
    int ready = 0;
    for (const Parameter& p : t.parameters) {
      reducer.write_mode(p);
      float* g = p.grad.as<float>();
      for (std::int64_t i = 0; i < p.grad.count(); ++i) g[i] = gradient(world.rank(), i);
      reducer.ready(p);
      ++ready;
      // This backward does not go on before the bucket is reduced, and asks nobody to do it.
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (reduced < ready && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      ASSERT_EQ(reduced, ready);
    }
    EXPECT_EQ(begun_elsewhere, ready);
    reducer.finish();
    for (const Parameter& p : t.parameters)
      for (std::int64_t i = 0; i < p.grad.count(); ++i)
        ASSERT_EQ(p.grad.as<float>()[i], gradient(0, i) + gradient(1, i)) << p.name;
  });
}

TEST(GradReducer, RefusesWhatBreaksTheOrder) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Table t;
    t.parameters[3].trainable = false;
    t.materialize(device, mesh, Shard::kOptimizer, 1000);
    const auto& [head, norm, up, frozen] =
        std::tie(t.parameters[0], t.parameters[1], t.parameters[2], t.parameters[3]);
    GradReducer reducer(t.store, mesh, device, DType::kF32);
    reducer.begin_step();
    EXPECT_NE(message_of([&] { reducer.ready(head); }).find("head became ready out of order"), std::string::npos);
    reducer.begin_micro(Micro::kLast);
    EXPECT_NE(message_of([&] { reducer.ready(head); }).find("was not written"), std::string::npos);
    reducer.write_mode(head);
    reducer.write_mode(norm);
    reducer.write_mode(up);
    EXPECT_NE(message_of([&] { reducer.ready(up); }).find("head is next"), std::string::npos);
    reducer.ready(head);
    EXPECT_NE(message_of([&] { reducer.ready(head); }).find("norm is next"), std::string::npos);
    EXPECT_NE(message_of([&] { reducer.write_mode(frozen); }).find("no gradient"), std::string::npos);
    EXPECT_NE(message_of([&] { reducer.ready(frozen); }).find("no gradient"), std::string::npos);
    EXPECT_NE(message_of([&] { reducer.finish(); }).find("norm never became ready"), std::string::npos);
    EXPECT_NE(message_of([&] { reducer.begin_micro(Micro::kLast); }).find("norm never became ready"),
              std::string::npos);
  });
}

TEST(GradReducer, AStepMustEndWithItsLastMicroBatch) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Table t;
    t.materialize(device, mesh, Shard::kOptimizer, 1000);
    GradReducer reducer(t.store, mesh, device, DType::kF32);
    reducer.begin_step();
    reducer.begin_micro(Micro::kEarlier);
    for (const Parameter& p : t.parameters) {
      reducer.write_mode(p);
      reducer.ready(p);
    }
    EXPECT_NE(message_of([&] { reducer.finish(); }).find("not its last"), std::string::npos);
  });
}

TEST(GradReducer, RefusesAWireOfAnotherType) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    Table t;
    t.materialize(device, mesh, Shard::kOptimizer, 1000);
    EXPECT_THROW(GradReducer(t.store, mesh, device, DType::kF16), Error);
  });
}

}  // namespace
}  // namespace drivetrain
