#include "runtime/ledger/ledger_file.h"

#include <gtest/gtest.h>

#include "kernels/error.h"

namespace drivetrain {
namespace {

std::filesystem::path fresh_file(const std::string& file) {
  const auto path = std::filesystem::path(testing::TempDir()) / file;
  std::filesystem::remove(path);
  return path;
}
StepRecord record(std::int64_t step) {
  StepRecord r{.step = step, .begin_ns = 1000 * step, .wall_ns = 900, .phase_ns = {}, .tokens = 2048};
  r.phase_ns[2] = 500 + step;
  r.phase_ns[8] = 7;
  return r;
}

TEST(LedgerFile, ReadsBackWhatWasWritten) {
  const auto file = fresh_file("ledger_roundtrip.bin");
  {
    LedgerFile ledger(file, 3);
    for (int step = 1; step <= 4; ++step) ledger.append(record(step));
  }
  EXPECT_EQ(std::filesystem::file_size(file), 64u + 4 * 128u);
  const LedgerContents in = read_ledger(file);
  EXPECT_EQ(in.world_rank, 3);
  ASSERT_EQ(in.records.size(), 4u);
  EXPECT_EQ(in.records[2].step, 3);
  EXPECT_EQ(in.records[2].begin_ns, 3000);
  EXPECT_EQ(in.records[2].phase_ns, record(3).phase_ns);
  EXPECT_EQ(in.records[2].tokens, 2048);
  EXPECT_EQ(in.records[2].residual_ns(), 900 - 503 - 7);
}

TEST(LedgerFile, AResumedRunContinuesAfterItsStep) {
  const auto file = fresh_file("ledger_resume.bin");
  {
    LedgerFile ledger(file, 0);
    for (int step = 1; step <= 4; ++step) ledger.append(record(step));
  }
  std::ofstream(file, std::ios::app | std::ios::binary) << "torn";
  {
    LedgerFile ledger(file, 0);
    ledger.keep_until(2);
    ledger.append(record(3));
  }
  const LedgerContents in = read_ledger(file);
  ASSERT_EQ(in.records.size(), 3u);
  EXPECT_EQ(in.records[2].step, 3);
}

TEST(LedgerFile, RefusesOtherFilesAndOtherVersions) {
  const auto file = fresh_file("ledger_wrong.bin");
  std::ofstream(file) << std::string(100, 'x');
  EXPECT_THROW(read_ledger(file), Error);
  const auto other = fresh_file("ledger_version.bin");
  { LedgerFile ledger(other, 0); }
  std::fstream patch(other, std::ios::in | std::ios::out | std::ios::binary);
  patch.seekp(8).put(2);
  patch.close();
  try {
    read_ledger(other);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(e.what()).find("version 2"), std::string::npos) << e.what();
  }
  EXPECT_THROW(read_ledger(fresh_file("ledger_absent.bin")), Error);
}

}  // namespace
}  // namespace drivetrain
