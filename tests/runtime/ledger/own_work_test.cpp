#include "runtime/ledger/own_work.h"

#include <gtest/gtest.h>

#include "kernels/ops.h"
#include "runtime/ledger/host_probe.h"
#include "runtime/ledger/step_ledger.h"

namespace drivetrain {
namespace {

constexpr std::int32_t kNone = Ops::kIgnore;

// Two rows of six: documents of 4 and 2 tokens; one of 3, one of one token that goes on in the next sample, padding.
TEST(OwnWork, CountsDocumentsWithoutPadding) {
  StepBatch window;
  HostBatch batch;
  batch.doc_starts = {0, 0, 0, 0, 4, 4, 0, 0, 0, 3, 4, 5};
  batch.targets = {1, 1, 1, kNone, 1, 1, 1, 1, kNone, 1, kNone, kNone};
  window.micro = {batch};
  OwnWork work = own_work(window, 6);
  EXPECT_EQ(work.tokens, 6 + 4);
  EXPECT_EQ(work.length_squares, 16 + 4 + 9 + 1);
  window.micro.push_back(batch);
  work = own_work(window, 6);
  EXPECT_EQ(work.tokens, 20);
  EXPECT_EQ(work.length_squares, 60);
  EXPECT_EQ(own_work(StepBatch{}, 6).tokens, 0);
}

TEST(HostProbe, SeesComputingAndNothingElse) {
  HostProbe probe;
  probe.since_last();
  const std::int64_t begin_ns = steady_ns();
  std::int64_t cpu_ns = 0, delay_ns = 0;
  while (cpu_ns < 20'000'000 && steady_ns() - begin_ns < 10'000'000'000) {
    const HostUse use = probe.since_last();
    cpu_ns += use.cpu_ns;
    delay_ns += use.run_delay_ns;
    EXPECT_GE(use.minor_faults, 0);
  }
  EXPECT_GE(cpu_ns, 20'000'000);
  EXPECT_LE(cpu_ns + delay_ns, (steady_ns() - begin_ns) * 11 / 10);
}

}  // namespace
}  // namespace drivetrain
