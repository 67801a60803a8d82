#include "runtime/step_report.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "runtime/step_check.h"
#include "tests/runtime/thread_mesh.h"

namespace drivetrain {
namespace {

using test::with_ranks;

void set(Device& device, Tensor f64, double x) {
  device.upload(f64, std::as_bytes(std::span(&x, 1)));
}

TEST(StepReport, SumsOverDataRanksAndCountsTensorRanksOnce) {
  with_ranks({2, 2}, [](Device& device, Mesh& mesh) {
    StepReport report(device, mesh, 3);
    for (int step = 0; step < 2; ++step) {
      report.begin();
      set(device, report.squares(), 1);  // every rank has its own share of these
      set(device, report.loss(0), 10 * (mesh.dp_rank() + 1));
      set(device, report.loss(1), mesh.dp_rank());
      const StepSums sums = report.exchange(2, 5 + mesh.dp_rank(), step == 1 && mesh.world().rank() == 3);
      EXPECT_EQ(sums.squares, 4);
      EXPECT_EQ(sums.losses, (std::vector<double>{30, 1}));
      EXPECT_EQ(sums.loss_sum, 31);
      EXPECT_EQ(sums.targets, 11);
      EXPECT_EQ(sums.stop, step == 1);
      EXPECT_FALSE(sums.bad_micro.has_value());
    }
  });
}

TEST(StepReport, WorksWithoutMicroBatches) {
  with_ranks({2, 1}, [](Device& device, Mesh& mesh) {
    StepReport report(device, mesh, 3);
    report.begin();
    const StepSums sums = report.exchange(0, 0, mesh.dp_rank() == 0);
    EXPECT_TRUE(sums.stop);
    EXPECT_EQ(sums.loss_sum, 0);
    EXPECT_TRUE(sums.losses.empty());
  });
}

TEST(StepReport, FindsTheFirstBadLoss) {
  with_ranks({3, 1}, [](Device& device, Mesh& mesh) {
    StepReport report(device, mesh, 3);
    report.begin();
    for (int micro = 0; micro < 3; ++micro) set(device, report.loss(micro), 1);
    if (mesh.dp_rank() == 0) set(device, report.loss(2), std::numeric_limits<double>::quiet_NaN());
    if (mesh.dp_rank() == 1) set(device, report.loss(2), std::numeric_limits<double>::infinity());
    if (mesh.dp_rank() == 2) set(device, report.loss(1), -std::numeric_limits<double>::infinity());
    const StepSums sums = report.exchange(3, 1, false);
    ASSERT_TRUE(sums.bad_micro.has_value());
    EXPECT_EQ(*sums.bad_micro, 1);
    const StepReport::Place place = report.first_bad_loss(3);
    EXPECT_EQ(place.micro, 1);
    EXPECT_EQ(place.world_rank, 2);
  });
}

TEST(StepReport, RefusesMoreMicroBatchesThanPlanned) {
  with_ranks({1, 1}, [](Device& device, Mesh& mesh) {
    const StepReport report(device, mesh, 2);
    EXPECT_THROW(report.loss(2), Error);
  });
}

TEST(StepCheck, DataRanksMustHoldTheTargetsOfTheWindow) {
  with_ranks({2, 1}, [](Device& device, Mesh& mesh) {
    StepReport report(device, mesh, 1);
    report.begin();
    StepBatch window;
    window.window_target_count = 10;
    const StepSums sums = report.exchange(0, 4, false);
    try {
      check_sums(sums, window, report, 12);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kLogic);
      EXPECT_EQ(std::string(e.what()), "step 12: the data ranks hold 8 targets, the window has 10");
    }
  });
}

}  // namespace
}  // namespace drivetrain
