#include "runtime/ledger/ledger_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "kernels/error.h"
#include "runtime/ledger/event_file.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder(const std::string& name) {
  const auto path = fs::path(testing::TempDir()) / ("ledger_file_test_" + name);
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}
LedgerInfo info(int world_rank) {
  return {.world_rank = world_rank,
          .world_size = 4,
          .dp = 2,
          .tp = 2,
          .threads = 3,
          .flops_per_token = 1.5e9,
          .peak_flops = 2e12,
          .steady_ns = 77,
          .unix_ns = 88,
          .compute = "bf16",
          .host = "node7",
          .device = "a processor"};
}
StepRecord record(std::int64_t step) {
  StepRecord r{.step = step, .begin_ns = 1000 * step, .wall_ns = 900, .tokens = 2048};
  r.class_ns[2] = 500 + step;
  r.class_ns[15] = 7;
  r.ops[1] = {1, 2, 3};
  r.axes[1].culprit = 3;
  r.own_length_squares = 12.5;
  return r;
}
void append_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}
std::string fault(const fs::path& file) {
  try {
    read_ledger(file);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(e.what()).find(file.string()), std::string::npos);
    return e.what();
  }
  return "none";
}

TEST(LedgerFile, ReadsBackWhatWasWritten) {
  const auto file = fresh_folder("roundtrip") / "rank.bin";
  {
    LedgerFile ledger(file, info(3));
    for (int step = 1; step <= 4; ++step) ledger.append(record(step));
  }
  EXPECT_EQ(fs::file_size(file), kLedgerHeaderBytes + 4 * sizeof(StepRecord));
  const RankLedger in = read_ledger(file);
  EXPECT_EQ(in.info.world_rank, 3);
  EXPECT_EQ(in.info.world_size, 4);
  EXPECT_EQ(in.info.threads, 3);
  EXPECT_EQ(in.info.flops_per_token, 1.5e9);
  EXPECT_EQ(in.info.peak_flops, 2e12);
  EXPECT_EQ(in.info.steady_ns, 77);
  EXPECT_EQ(in.info.unix_ns, 88);
  EXPECT_EQ(in.info.compute, "bf16");
  EXPECT_EQ(in.info.host, "node7");
  EXPECT_EQ(in.info.device, "a processor");
  EXPECT_EQ(axis_members(in.info, CommAxis::kTp), (std::vector<int>{2, 3}));
  EXPECT_EQ(axis_members(in.info, CommAxis::kDp), (std::vector<int>{1, 3}));
  EXPECT_EQ(axis_members(in.info, CommAxis::kWorld), (std::vector<int>{0, 1, 2, 3}));
  ASSERT_EQ(in.records.size(), 4u);
  const StepRecord& r = in.records[2];
  EXPECT_EQ(r.step, 3);
  EXPECT_EQ(r.begin_ns, 3000);
  EXPECT_EQ(r.class_ns, record(3).class_ns);
  EXPECT_EQ(r.ops[1].bytes, 3);
  EXPECT_EQ(r.axes[1].culprit, 3);
  EXPECT_EQ(r.own_length_squares, 12.5);
  EXPECT_EQ(r.residual_ns(), 900 - 503 - 7);
  ASSERT_EQ(read_ledger(file, 2).records.size(), 2u);
  EXPECT_EQ(read_ledger(file, 2).records[0].step, 3);
}

TEST(LedgerFile, IsInTheFileWithinASecondOfSteps) {
  const auto file = fresh_folder("flush") / "rank.bin";
  LedgerFile ledger(file, info(0));
  StepRecord r = record(1);
  r.begin_ns = 10'000'000'000;
  ledger.append(r);
  EXPECT_EQ(read_ledger(file).records.size(), 1u);
  r.step = 2;
  ledger.append(r);  // at the same time: stays in memory
  EXPECT_EQ(read_ledger(file).records.size(), 1u);
  r.begin_ns += 1'000'000'000;
  ledger.append(r);
  EXPECT_EQ(read_ledger(file).records.size(), 3u);
}

TEST(LedgerFile, AResumedRunContinuesAfterItsStep) {
  const auto file = fresh_folder("resume") / "rank.bin";
  {
    LedgerFile ledger(file, info(0));
    for (int step = 1; step <= 4; ++step) ledger.append(record(step));
  }
  append_text(file, "torn");
  EXPECT_EQ(read_ledger(file).records.size(), 4u);
  {
    LedgerInfo now = info(0);
    now.host = "node8";
    LedgerFile ledger(file, now);
    ledger.keep_until(2);
    ledger.append(record(3));
  }
  const RankLedger in = read_ledger(file);
  EXPECT_EQ(in.info.host, "node8");
  EXPECT_EQ(in.info.resumed_after, 2);
  ASSERT_EQ(in.records.size(), 3u);
  EXPECT_EQ(in.records[2].step, 3);
}

TEST(LedgerFile, RefusesOtherFilesAndOtherVersions) {
  const auto folder = fresh_folder("wrong");
  append_text(folder / "foreign", std::string(300, 'x'));
  EXPECT_NE(fault(folder / "foreign").find("DTLEDGER"), std::string::npos);
  append_text(folder / "empty", "");
  EXPECT_NE(fault(folder / "empty").find("is empty"), std::string::npos);
  const auto old = folder / "old";
  { LedgerFile ledger(old, info(0)); }
  std::fstream(old, std::ios::in | std::ios::out | std::ios::binary).seekp(8).put(1);
  EXPECT_NE(fault(old).find("version 1, this drivetrain reads version 2"), std::string::npos) << fault(old);
  EXPECT_THROW(read_ledger(folder / "absent"), Error);
  EXPECT_THROW(read_ledger(folder), Error);
  { LedgerFile replaced(old, info(0)); }
  EXPECT_EQ(fault(old), "none");
}

TEST(LedgerFile, ARunIsReadWithTheRanksOfItsLayout) {
  const auto run = fresh_folder("run"), folder = run / "ledger";
  EXPECT_THROW(read_run_ledger(run), Error);
  fs::create_directories(folder);
  for (const int rank : {0, 1, 3}) {  // rank 2's host has a folder of its own
    LedgerFile ledger(ledger_path(folder, rank), info(rank));
    ledger.append(record(1));
  }
  LedgerInfo former = info(5);
  former.world_size = 8;
  former.dp = 4;
  { LedgerFile ledger(ledger_path(folder, 5), former); }
  for (const fs::path& path : {run, folder}) {
    const auto ranks = read_run_ledger(path);
    ASSERT_EQ(ranks.size(), 3u);
    EXPECT_EQ(ranks[2].info.world_rank, 3);
    EXPECT_EQ(ranks[2].records.size(), 1u);
  }
}

LedgerEvent event(std::int64_t step, std::int64_t bytes) {
  return {.step = step, .begin_ns = 1, .end_ns = 2, .bytes = bytes};
}

TEST(EventFile, ReadsBackWholeSteps) {
  const auto file = fresh_folder("events") / "events.bin";
  {
    EventFile out(file, info(1));
    for (std::int64_t step = 1; step <= 3; ++step)
      out.append(record(step), std::vector<LedgerEvent>(static_cast<std::size_t>(step), event(step, 10 * step)), 4);
  }
  const RankEvents in = read_events(file);
  EXPECT_EQ(in.info.world_rank, 1);
  ASSERT_EQ(in.steps.size(), 3u);
  EXPECT_EQ(in.steps[1].step, 2);
  EXPECT_EQ(in.steps[1].begin_ns, 2000);
  EXPECT_EQ(in.steps[1].wall_ns, 900);
  EXPECT_EQ(in.steps[1].dropped, 4);
  ASSERT_EQ(in.steps[2].events.size(), 3u);
  EXPECT_EQ(in.steps[2].events[2].bytes, 30);
  ASSERT_EQ(read_events(file, 2, 2).steps.size(), 1u);
  EXPECT_EQ(read_events(file, 2, 2).steps[0].events.size(), 2u);

  for (const std::uintmax_t cut : {1, 60, 180}) {  // inside the last event, the first of them, the step's own header
    fs::resize_file(file, kLedgerHeaderBytes + 3 * 40 + 6 * 56 - cut);
    EXPECT_EQ(read_events(file).steps.size(), 2u) << cut;
  }
  {
    EventFile out(file, info(1));
    out.keep_until(1);
    out.append(record(2), {}, 0);
  }
  EXPECT_EQ(read_events(file).steps.size(), 2u);
  EXPECT_TRUE(read_events(file).steps[1].events.empty());
  EXPECT_EQ(fault(file).find("none"), std::string::npos);
}

// 100 steps of 96 bytes each; every step up to 2400 bytes, then half as many with each 960 bytes more.
TEST(EventFile, ThinsOutWhenItIsFull) {
  const auto file = fresh_folder("thin") / "events.bin";
  {
    EventFile out(file, info(0), {.full_bytes = 2400, .more_bytes = 960});
    const std::vector<LedgerEvent> one{event(1, 1)};
    for (std::int64_t step = 1; step <= 100; ++step) out.append(record(step), one, 0);
  }
  const auto steps = read_events(file).steps;
  std::int64_t before = 0, stride = 1;
  for (const StepEvents& s : steps) {
    const std::int64_t distance = s.step - before;
    EXPECT_GE(distance, stride);  // never denser again
    if (distance > stride) stride *= 2;
    EXPECT_EQ(s.step % stride, 0);
    before = s.step;
  }
  EXPECT_EQ(steps[22].step, 23);
  EXPECT_GE(stride, 8);
  EXPECT_GT(before, 90);
  EXPECT_LT(steps.size(), 50u);
}

}  // namespace
}  // namespace drivetrain
