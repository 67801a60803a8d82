// Collectives in the background: order, errors, ends. That their results are right is the grid's and the random
// programs' to show (collective_rules_test, world_mpi_test).
#include "runtime/comm/progress_comm.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/comm/host_threads.h"
#include "runtime/comm/self_comm.h"
#include "runtime/comm/thread_comm.h"
#include "tests/runtime/comm/forwarding_comm.h"

namespace drivetrain {
namespace {

constexpr std::int64_t kLarge = 50000;  // f32: above ProgressCommunicator::kInlineBytes

Tensor tensor(std::vector<float>& x) {
  return Tensor(x.data(), DType::kF32, {static_cast<std::int64_t>(x.size())});
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

std::string thread_name() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

// Runs body on the ranks' worlds, each behind a progress thread.
void run_in_background(int ranks, const std::function<void(Communicator&)>& body) {
  run_thread_ranks(ranks, [&](Communicator& world) {
    ProgressCommunicator background(world.split(0, world.rank()));
    body(background);
  });
}

TEST(Progress, IsWantedWhereEveryRankHasACoreToSpare) {
  CommOptions options;
  options.compute_threads = 2;
  EXPECT_TRUE(wants_progress(options, 6, 2));
  EXPECT_FALSE(wants_progress(options, 5, 2));
  options.progress = ProgressThread::kOn;
  EXPECT_TRUE(wants_progress(options, 1, 2));
  options.progress = ProgressThread::kOff;
  EXPECT_FALSE(wants_progress(options, 100, 1));
}

TEST(Progress, GoesOnWhileTheCallerComputes) {
  std::atomic<bool> first_has_called{false};
  run_in_background(2, [&](Communicator& world) {
    EXPECT_TRUE(world.asynchronous());
    EXPECT_EQ(world.transport(), "threads");
    std::vector<float> x(kLarge, 1);
    // Rank 1 takes part only after rank 0's call has returned: were the call to block, nobody would ever move.
    if (world.rank() == 1) first_has_called.wait(false);
    Work work = world.all_reduce(tensor(x), ReduceOp::kSum);
    if (world.rank() == 0) {
      first_has_called = true;
      first_has_called.notify_all();
    }
    work.wait();
    EXPECT_EQ(x[kLarge - 1], 2);
    const CollectiveTiming t = work.timing();
    EXPECT_EQ(t.bytes, kLarge * 4);
    EXPECT_LE(t.arrival_ns, t.last_arrival_ns);
    EXPECT_LE(t.last_arrival_ns, t.end_ns);
    work.wait();
  });
}

TEST(Progress, KeepsTheOrderOfCallsLargeAndSmall) {
  run_in_background(3, [](Communicator& world) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> x(kLarge, static_cast<float>(world.rank()));
      std::vector<Work> works;
      works.push_back(world.all_reduce(tensor(x), ReduceOp::kSum));                      // 3 everywhere
      works.push_back(world.all_reduce(tensor(x).flat(0, 2), ReduceOp::kSum));           // 9
      works.push_back(world.broadcast(tensor(x).flat(1, kLarge - 1), round % 3));        // the same
      works.push_back(world.all_reduce(tensor(x).flat(0, kLarge), ReduceOp::kAverage));  // the same
      if (round % 2 == 0) world.barrier();
      for (Work& work : works) work.wait();
      ASSERT_EQ(x[0], 9);
      ASSERT_EQ(x[1], 9);
      ASSERT_EQ(x[2], 3);
    }
  });
}

TEST(Progress, GroupsMayBeWaitedForInAnyOrder) {
  run_in_background(4, [](Communicator& world) {
    const auto pair = world.split(world.rank() / 2, 0), other = world.split(world.rank() % 2, 0);
    for (int round = 0; round < 50; ++round) {
      std::vector<float> a(kLarge, 1), b(kLarge, 2), c(kLarge, 3);
      std::array<Work, 3> works = {world.all_reduce(tensor(a), ReduceOp::kSum),
                                   pair->all_reduce(tensor(b), ReduceOp::kSum),
                                   other->all_reduce(tensor(c), ReduceOp::kSum)};
      for (std::size_t i = 0; i < 3; ++i) works[(i + static_cast<std::size_t>(world.rank())) % 3].wait();
      ASSERT_EQ(a[7] + b[7] + c[7], 4 + 4 + 6);
    }
  });
}

TEST(Progress, SmallCallsAreMadeByTheCallerOthersByANamedThread) {
  std::vector<std::string> threads;
  const auto watch = [&](test::ForwardingCommunicator::Moment moment) {
    if (moment == test::ForwardingCommunicator::Moment::kBefore) threads.push_back(thread_name());
  };
  ProgressCommunicator world(std::make_unique<test::ForwardingCommunicator>(make_self_communicator(), watch));
  const std::string here = thread_name();
  std::vector<float> large(kLarge), small(8);
  world.all_reduce(tensor(small), ReduceOp::kSum).wait();
  Work work = world.all_reduce(tensor(large), ReduceOp::kSum);
  // Leave it to the thread: a wait would make the call here.
  for (CollectiveTiming t; t.end_ns == 0; t = work.timing()) std::this_thread::yield();
  world.all_reduce(tensor(small), ReduceOp::kSum).wait();
  EXPECT_EQ(threads, (std::vector<std::string>{here, "comm 0/1", here}));
}

TEST(Progress, WrongArgumentsAreRefusedAtOnceAndBreakNothing) {
  run_in_background(2, [](Communicator& world) {
    std::vector<float> x(kLarge), y(kLarge);
    Work before = world.all_reduce(tensor(x), ReduceOp::kSum);
    EXPECT_TRUE(contains(error_of([&] { (void)world.all_gather(tensor(x), tensor(y)); }), "equal shares"));
    EXPECT_TRUE(
        contains(error_of([&] { (void)world.reduce_scatter(tensor(x), tensor(y), ReduceOp::kMax); }), "equal"));
    EXPECT_TRUE(contains(error_of([&] { (void)world.broadcast(tensor(x), 2); }), "root 2"));
    EXPECT_TRUE(contains(error_of([&] { (void)world.reduce(tensor(x), -1, ReduceOp::kSum); }), "root -1"));
    EXPECT_TRUE(contains(error_of([&] { (void)world.all_to_all(tensor(x), tensor(x)); }), "overlap"));
    EXPECT_TRUE(contains(error_of([&] { (void)world.send(tensor(x), world.rank()); }), "another rank"));
    EXPECT_TRUE(contains(error_of([&] { (void)world.recv(tensor(x), 7); }), "rank 7"));
    before.wait();
    world.all_reduce(tensor(y), ReduceOp::kSum).wait();
  });
}

TEST(Progress, AMismatchIsThrownByWaitAndByEveryLaterCall) {
  run_thread_ranks(2, [](Communicator& plain) {
    ProgressCommunicator world(plain.split(0, plain.rank()));
    std::vector<float> x(kLarge), y(kLarge);
    Work wrong = world.all_reduce(tensor(x).flat(0, kLarge - plain.rank()), ReduceOp::kSum);
    std::vector<std::string> said = {error_of([&] { wrong.wait(); }),
                                     error_of([&] { wrong.wait(); }),
                                     error_of([&] { world.all_reduce(tensor(y), ReduceOp::kSum).wait(); }),
                                     error_of([&] { world.all_reduce(tensor(y).flat(0, 1), ReduceOp::kSum).wait(); }),
                                     error_of([&] { world.barrier(); }),
                                     error_of([&] { (void)world.split(0, 0); })};
    for (const std::string& text : said)
      EXPECT_TRUE(contains(text, "all_reduce(f32[50000], sum)") && contains(text, "all_reduce(f32[49999], sum)"))
          << text;
  });
}

TEST(Progress, CallsBehindAFailureFailWithIt) {
  run_in_background(2, [](Communicator& world) {
    std::vector<float> x(kLarge), y(kLarge);
    Work wrong = world.reduce(tensor(x), world.rank(), ReduceOp::kSum);
    std::string behind;
    try {
      Work queued = world.all_reduce(tensor(y), ReduceOp::kSum);  // may already know of the failure
      queued.wait();
    } catch (const Error& e) {
      behind = e.what();
    }
    EXPECT_TRUE(contains(behind, "root 0") && contains(behind, "root 1")) << behind;
  });
}

TEST(Progress, AWorkLetGoIsWaitedFor) {
  run_in_background(2, [](Communicator& world) {
    std::vector<float> x(kLarge, 1);
    if (world.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    { Work dropped = world.all_reduce(tensor(x), ReduceOp::kSum); }
    EXPECT_EQ(x[kLarge - 1], 2);
  });
}

TEST(Progress, ClosingFinishesWhatIsOnItsWay) {
  run_thread_ranks(2, [](Communicator& plain) {
    std::vector<float> x(kLarge, 1);
    Work work;
    {
      ProgressCommunicator world(plain.split(0, plain.rank()));
      if (plain.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      work = world.all_reduce(tensor(x), ReduceOp::kSum);
    }
    EXPECT_EQ(x[kLarge - 1], 2);
    work.wait();
  });
}

TEST(Progress, AbortWakesACollectiveInFlight) {
  run_in_background(2, [](Communicator& world) {
    std::vector<float> x(kLarge);
    if (world.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return world.abort("the operator said stop");
    }
    Work work = world.all_reduce(tensor(x), ReduceOp::kSum);
    EXPECT_TRUE(contains(error_of([&] { work.wait(); }), "the operator said stop"));
    EXPECT_TRUE(contains(error_of([&] { world.barrier(); }), "the operator said stop"));
  });
}

// Rank 0 throws with two collectives in flight, of which rank 1 joins the first one, or none.
std::string told_of_an_exception(bool joins, double& seconds) {
  const auto start = std::chrono::steady_clock::now();
  std::string told;
  const auto body = [&](Communicator& plain) {
    std::atomic<bool> begun{false};
    const auto watch = [&](test::ForwardingCommunicator::Moment) { begun = true; };
    const auto other = plain.split(0, plain.rank());
    std::vector<float> x(kLarge), y(kLarge);
    ProgressCommunicator world(std::make_unique<test::ForwardingCommunicator>(plain.split(0, plain.rank()), watch));
    if (world.rank() == 0) {
      const Work first = world.all_reduce(tensor(x), ReduceOp::kSum),
                 second = world.all_reduce(tensor(y), ReduceOp::kSum);
      while (!begun) std::this_thread::yield();
      throw std::runtime_error("the disk is full");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    told = error_of([&] {
      if (joins) world.all_reduce(tensor(x), ReduceOp::kSum).wait();
      other->barrier();
    });
  };
  EXPECT_THROW(run_thread_ranks(2, body), std::runtime_error);
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return told;
}

TEST(Progress, PeersThatJoinAfterAnExceptionLearnItsReason) {
  double seconds = 0;
  const std::string told = told_of_an_exception(true, seconds);
  EXPECT_TRUE(contains(told, "the disk is full")) << told;
}

TEST(Progress, PeersThatDoNotJoinAreWokenAfterTheGrace) {
  double seconds = 0;
  const std::string told = told_of_an_exception(false, seconds);
  EXPECT_TRUE(contains(told, "rank 0 failed: an exception left")) << told;
  EXPECT_GT(seconds, 1.5);
  EXPECT_LT(seconds, 20);
}

TEST(Progress, SendsGoOnUntilWaitedForInAnyOrder) {
  run_in_background(3, [](Communicator& world) {
    const int next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
    for (int round = 0; round < 20; ++round) {
      std::vector<float> out(kLarge, static_cast<float>(world.rank())), in(kLarge), x(kLarge, 1), tail(3);
      Work reduced = world.all_reduce(tensor(x), ReduceOp::kSum);
      Work first = world.send(tensor(out), next);  // behind the reduction
      Work second = world.send(tensor(out).flat(0, 3), next);
      Work received = world.recv(tensor(in), previous);
      Work last = world.recv(tensor(tail), previous);
      second.wait();
      first.wait();
      for (Work* work : {&last, &received, &reduced}) work->wait();
      ASSERT_EQ(in[kLarge - 1], static_cast<float>(previous));
      ASSERT_EQ(tail[2], static_cast<float>(previous));
      ASSERT_EQ(x[0], 3);
    }
  });
}

}  // namespace
}  // namespace drivetrain
