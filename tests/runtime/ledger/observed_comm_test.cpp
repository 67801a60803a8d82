#include "runtime/ledger/observed_comm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "runtime/comm/plan_comm.h"
#include "runtime/ledger/ledger_cost.h"
#include "runtime/mesh.h"
#include "tests/runtime/ledger/fake_clock.h"

namespace drivetrain {
namespace {

using test::fake_clock;
using test::fake_now_ns;
using test::pass;

// A group of four on the fake clock whose collectives all take the same course.
struct Course {
  std::int64_t last_arrival_after = 0, end_after = 0;  // this rank's call
  int last_rank = -1;                                  // of the group
  bool pending = false;
};

class CourseState final : public Work::State {
 public:
  explicit CourseState(const CollectiveTiming& timing) : timing_(timing) {}
  void wait() override { fake_now_ns = std::max(fake_now_ns, timing_.end_ns); }
  CollectiveTiming timing() const override { return timing_; }

 private:
  CollectiveTiming timing_;
};

class FakeGroup final : public Communicator {
 public:
  explicit FakeGroup(const Course& course) : course_(course) {}
  int rank() const override { return 2; }
  int size() const override { return 4; }
  std::string transport() const override { return "fake"; }
  Work all_reduce(Tensor x, ReduceOp) override { return run(x); }
  Work all_gather(Tensor out, Tensor) override { return run(out); }
  Work reduce_scatter(Tensor, Tensor in, ReduceOp) override { return run(in); }
  Work broadcast(Tensor x, int) override { return run(x); }
  Work reduce(Tensor x, int, ReduceOp) override { return run(x); }
  Work all_to_all(Tensor out, Tensor) override { return run(out); }
  Work send(Tensor x, int) override { return run(x); }
  Work recv(Tensor x, int) override { return run(x); }
  void barrier() override { pass(course_.end_after); }
  std::unique_ptr<Communicator> split(int, int) override { return nullptr; }
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override { return Buffer(device, bytes); }
  Deadline set_deadline(Deadline deadline) override { return deadline; }
  void abort(const std::string&) noexcept override {}

 private:
  Work run(const Tensor& x) {
    CollectiveTiming timing{fake_now_ns, fake_now_ns + course_.last_arrival_after, fake_now_ns + course_.end_after,
                            static_cast<std::int64_t>(x.bytes()), course_.last_rank};
    if (course_.pending) return Work(std::make_shared<CourseState>(timing));
    fake_now_ns = timing.end_ns;
    return Work(timing);
  }
  const Course& course_;
};

class Observed : public testing::Test {
 protected:
  StepRecord step(const std::function<void(Communicator&)>& body) {
    {
      const LedgerSpan span(&ledger_, Phase::kBackward);
      body(comm_);
    }
    return ledger_.end_step(1, 0);
  }
  Course course_;
  StepLedger ledger_{fake_clock};
  ObservedCommunicator comm_{std::make_unique<FakeGroup>(course_), CommAxis::kDp, {1, 3, 5, 7}, ledger_};
  std::array<float, 4> memory_{};
  Tensor x_{memory_.data(), DType::kF32, {4}};
};

TEST_F(Observed, ASynchronousCallIsWaitThenTransfer) {
  course_ = {30, 70, 3};
  const StepRecord r = step([&](Communicator& c) {
    pass(2);
    Work work = c.all_reduce(x_, ReduceOp::kSum);
    pass(5);
    work.wait();
  });
  EXPECT_EQ(r.at(TimeClass::kDpWait), 30);
  EXPECT_EQ(r.at(TimeClass::kDpTransfer), 40);
  EXPECT_EQ(r.at(TimeClass::kHostGap), 7);
  EXPECT_EQ(r.residual_ns(), 0);
  EXPECT_EQ(r.at(CommAxis::kDp).calls, 1);
  EXPECT_EQ(r.at(CommAxis::kDp).bytes, 16);
  EXPECT_EQ(r.at(CommAxis::kDp).culprit, 7);
  EXPECT_EQ(r.at(CommAxis::kDp).culprit_ns, 30);
}

TEST_F(Observed, APendingWorkCostsWhatItsWaitBlocks) {
  const auto wait_after = [&](std::int64_t hidden) {
    return step([&](Communicator& c) {
      Work work = c.reduce_scatter(x_.flat(0, 1), x_, ReduceOp::kSum);
      const std::int64_t begin_ns = fake_now_ns;
      pass(hidden);
      ledger_.op(OpClass::kGemm, begin_ns, fake_now_ns, 0, 0);
      work.wait();
      work.wait();  // again: costs nothing
    });
  };
  course_ = {30, 70, 0, true};
  const StepRecord early = wait_after(10);  // 20 until the last arrives, 40 more until the end
  EXPECT_EQ(early.at(TimeClass::kBackward), 10);
  EXPECT_EQ(early.at(TimeClass::kDpWait), 20);
  EXPECT_EQ(early.at(TimeClass::kDpTransfer), 40);
  EXPECT_EQ(early.at(CommAxis::kDp).culprit, 1);
  const StepRecord later = wait_after(50);
  EXPECT_EQ(later.at(TimeClass::kDpWait), 0);
  EXPECT_EQ(later.at(TimeClass::kDpTransfer), 20);
  EXPECT_EQ(later.at(CommAxis::kDp).culprit, -1);
  const StepRecord hidden = wait_after(90);
  EXPECT_EQ(hidden.at(TimeClass::kDpTransfer), 0);
  EXPECT_EQ(hidden.at(CommAxis::kDp).in_flight_ns, 40);
  EXPECT_EQ(hidden.at(CommAxis::kDp).calls, 1);
  EXPECT_EQ(hidden.residual_ns(), 0);
  ASSERT_EQ(ledger_.events().size(), 2u);  // one collective, one phase
}

TEST_F(Observed, EveryCollectiveIsOneOfItsKind) {
  course_ = {1, 3, 0};
  step([&](Communicator& c) {
    c.all_reduce(x_, ReduceOp::kSum).wait();
    c.all_gather(x_, x_.flat(0, 1)).wait();
    c.reduce_scatter(x_.flat(0, 1), x_, ReduceOp::kSum).wait();
    c.broadcast(x_, 0).wait();
    c.reduce(x_, 0, ReduceOp::kSum).wait();
    c.send(x_, 0).wait();
    c.recv(x_, 0).wait();
    c.all_to_all(x_, x_).wait();
    c.barrier();
  });
  using Op = CollectiveOp;
  const std::vector<std::pair<Op, std::uint64_t>> expected{
      {Op::kAllReduce, 1}, {Op::kAllGather, 2}, {Op::kReduceScatter, 3}, {Op::kBroadcast, 4}, {Op::kReduce, 5},
      {Op::kSend, 0},      {Op::kRecv, 0},      {Op::kAllToAll, 6},      {Op::kBarrier, 7}};
  ASSERT_EQ(ledger_.events().size(), expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(static_cast<Op>(ledger_.events()[i].what), expected[i].first) << i;
    EXPECT_EQ(ledger_.events()[i].sequence, expected[i].second) << i;
  }
}

TEST_F(Observed, ABarrierIsWaiting) {
  course_.end_after = 12;
  const StepRecord r = step([](Communicator& c) { c.barrier(); });
  EXPECT_EQ(r.at(TimeClass::kDpWait), 12);
  EXPECT_EQ(r.at(TimeClass::kDpTransfer), 0);
}

TEST(ObservedMesh, ChargesEachGroupToItsAxis) {
  StepLedger ledger;
  Mesh mesh({2, 3}, make_plan_communicator(4, 6), make_plan_communicator(1, 2), make_plan_communicator(1, 3));
  mesh.observe(ledger);
  EXPECT_EQ(mesh.dp_rank(), 1);
  EXPECT_EQ(mesh.tp().size(), 3);
  {
    const LedgerSpan span(&ledger, Phase::kForward);
    for (int i = 0; i < 3; ++i) mesh.tp().all_reduce(Tensor(), ReduceOp::kSum).wait();
    for (int i = 0; i < 2; ++i) mesh.dp().all_reduce(Tensor(), ReduceOp::kSum).wait();
    mesh.world().all_reduce(Tensor(), ReduceOp::kSum).wait();
  }
  const StepRecord r = ledger.end_step(1, 0);
  EXPECT_EQ(r.at(CommAxis::kTp).calls, 3);
  EXPECT_EQ(r.at(CommAxis::kDp).calls, 2);
  EXPECT_EQ(r.at(CommAxis::kWorld).calls, 1);
}

TEST(LedgerCost, IsMeasured) {
  const LedgerCost cost = measure_ledger_cost();
  for (const double ns : {cost.phase_ns, cost.op_ns, cost.collective_ns}) {
    EXPECT_GT(ns, 5);
    EXPECT_LT(ns, 20000);
  }
}

}  // namespace
}  // namespace drivetrain
