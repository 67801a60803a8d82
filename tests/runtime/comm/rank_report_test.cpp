// Who is named when a collective does not finish.
#include "runtime/comm/rank_report.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

enum class Call { kDone, kUnderWay };

RankReport report(int world_rank, RankState state, Call call) {
  RankReport r;
  r.world_rank = world_rank;
  r.pid = 1000 + world_rank;
  r.state = state;
  std::string("node1").copy(r.host.data(), r.host.size() - 1);
  r.newest.number = 1;
  r.newest.op = CollectiveOp::kBarrier;
  r.newest.sequence = 12;
  r.newest.end_ns = call == Call::kDone ? 5 : 0;
  r.idle_ns = 3'200'000'000;
  return r;
}

TEST(NameAbsent, TheAwaitedRankThatComputes) {
  const RankReport all[] = {report(0, RankState::kRunning, Call::kUnderWay),
                            report(1, RankState::kRunning, Call::kDone)};
  const int awaited[] = {1};
  EXPECT_EQ(name_absent(awaited, all),
            "rank 1 (host node1, pid 1001, running, last call barrier() #12, done 3.2 s ago)");
}

TEST(NameAbsent, WhoIsStoppedComesBeforeWhoOnlyWaitsForIt) {
  const RankReport all[] = {report(0, RankState::kRunning, Call::kUnderWay),
                            report(1, RankState::kRunning, Call::kUnderWay),
                            report(2, RankState::kStopped, Call::kDone), report(3, RankState::kRunning, Call::kDone)};
  const int awaited[] = {1};
  EXPECT_EQ(name_absent(awaited, all),
            "rank 2 (host node1, pid 1002, stopped, last call barrier() #12, done 3.2 s ago); awaited, but waiting "
            "themselves: rank 1 (host node1, pid 1001, running, last call barrier() #12, begun 3.2 s ago)");
}

TEST(NameAbsent, WhenAllAwaitedOnlyWaitTheOneInNoCollectiveIsNamed) {
  const RankReport all[] = {report(0, RankState::kRunning, Call::kUnderWay),
                            report(1, RankState::kRunning, Call::kUnderWay),
                            report(2, RankState::kRunning, Call::kDone)};
  const int awaited[] = {1};
  EXPECT_TRUE(name_absent(awaited, all).starts_with("rank 2 (")) << name_absent(awaited, all);
}

TEST(NameAbsent, ADeadlockNamesTheAwaited) {
  const RankReport all[] = {report(0, RankState::kRunning, Call::kUnderWay),
                            report(1, RankState::kRunning, Call::kUnderWay)};
  const int awaited[] = {1};
  EXPECT_EQ(name_absent(awaited, all),
            "rank 1 (host node1, pid 1001, running, last call barrier() #12, begun 3.2 s ago)");
}

TEST(NameAbsent, AHostThatDoesNotAnswerIsSaid) {
  const RankReport all[] = {report(0, RankState::kRunning, Call::kUnderWay),
                            report(1, RankState::kSilent, Call::kDone)};
  const int awaited[] = {1};
  EXPECT_EQ(name_absent(awaited, all),
            "rank 1 (host node1, pid 1001, does not answer: nobody on its host can be asked)");
}

}  // namespace
}  // namespace drivetrain
