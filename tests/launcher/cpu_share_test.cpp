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
  std::vector<CpuPlace> places;
  std::vector<int> cpus;
  for (int cores = 1; cores <= 9; ++cores) {
    places.push_back({cores - 1, cores - 1});
    cpus.push_back(cores - 1);
    for (int size = 1; size <= cores; ++size) {
      std::vector<int> all;
      for (int rank = 0; rank < size; ++rank) {
        const CpuShare share = share_of(places, rank, size);
        EXPECT_GE(share.threads, cores / size);
        EXPECT_LE(share.threads, (cores + size - 1) / size);
        all.insert(all.end(), share.cpus.begin(), share.cpus.end());
      }
      EXPECT_EQ(all, cpus) << cores << " cores, " << size << " ranks";
    }
  }
}

TEST(CpuShare, SeesThisMachine) {
  EXPECT_GE(allowed_cpus().size(), 1u);
  EXPECT_GE(count_cores(allowed_cpus()), 1);
}

}  // namespace
}  // namespace drivetrain
