#include "launcher/cpu_share.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

// Two cores with two hardware threads each, cpus 0 1 2 3 on cores 0 1 0 1.
const std::vector<CpuPlace> two_by_two{{0, 0}, {2, 0}, {1, 1}, {3, 1}};

TEST(CpuShare, OneRankPerCoreGetsItsCore) {
  EXPECT_EQ(share_of(two_by_two, 0, 2).cpus, (std::vector<int>{0, 2}));
  EXPECT_EQ(share_of(two_by_two, 1, 2).cpus, (std::vector<int>{1, 3}));
  EXPECT_EQ(share_of(two_by_two, 1, 2).threads, 1);
}

TEST(CpuShare, OneRankGetsEverything) {
  EXPECT_EQ(share_of(two_by_two, 0, 1).cpus.size(), 4u);
  EXPECT_EQ(share_of(two_by_two, 0, 1).threads, 2);
}

TEST(CpuShare, MoreRanksThanCoresShareUnpinned) {
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(share_of(two_by_two, rank, 3).cpus.size(), 4u);
    EXPECT_EQ(share_of(two_by_two, rank, 3).threads, 1);
  }
}

TEST(CpuShare, UnevenSlicesCoverEveryCoreOnce) {
  std::vector<CpuPlace> seven;
  for (int cpu = 0; cpu < 7; ++cpu) seven.push_back({cpu, cpu});
  std::vector<int> all;
  for (int rank = 0; rank < 3; ++rank) {
    const CpuShare share = share_of(seven, rank, 3);
    EXPECT_GE(share.threads, 2);
    all.insert(all.end(), share.cpus.begin(), share.cpus.end());
  }
  EXPECT_EQ(all, (std::vector<int>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(CpuShare, SeesThisMachine) {
  EXPECT_GE(allowed_cpus().size(), 1u);
  EXPECT_GE(count_cores(allowed_cpus()), 1);
}

}  // namespace
}  // namespace drivetrain
