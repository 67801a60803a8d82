// Flight recorder files: what is written is read, and what is not such a file is refused with a reason.
#include "runtime/comm/flight_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

class FlightFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static FlightFile sample() {
    FlightFile file{"node1", "rank 3 is gone", 11, 22, {}};
    for (int r = 0; r < 2; ++r) {
      FlightRank rank{r, 100 + r, RankState::kStopped, 5000, {}, {}};
      FlightGroup group{9, 2, {}};
      std::string("group {0, 1} of the world").copy(group.text.data(), group.text.size() - 1);
      rank.groups.push_back(group);
      for (std::uint32_t i = 1; i <= 3; ++i) {
        FlightEntry entry;
        entry.number = i;
        entry.op = CollectiveOp::kBroadcast;
        entry.sequence = i;
        entry.end_ns = 7;
        rank.entries.push_back(entry);
      }
      file.ranks.push_back(rank);
    }
    return file;
  }
  std::string error_of(const std::filesystem::path& path) const {
    try {
      read_flight_file(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void overwrite(std::streamoff at, char byte) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file.put(byte);
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("drivetrain-flight-files-" + std::to_string(getpid()));
  const std::filesystem::path path_ = folder_ / "deep" / "recorder-node1.bin";
};

TEST_F(FlightFiles, WhatIsWrittenIsRead) {
  write_flight_file(path_, sample());
  const FlightFile file = read_flight_file(path_);
  EXPECT_EQ(file.host, "node1");
  EXPECT_EQ(file.reason, "rank 3 is gone");
  EXPECT_EQ(file.wall_ns, 11);
  EXPECT_EQ(file.steady_ns, 22);
  ASSERT_EQ(file.ranks.size(), 2u);
  EXPECT_EQ(file.ranks[1].world_rank, 1);
  EXPECT_EQ(file.ranks[1].pid, 101);
  EXPECT_EQ(file.ranks[1].state, RankState::kStopped);
  EXPECT_EQ(file.ranks[1].calls, 5000u);
  ASSERT_EQ(file.ranks[1].groups.size(), 1u);
  EXPECT_STREQ(file.ranks[1].groups[0].text.data(), "group {0, 1} of the world");
  ASSERT_EQ(file.ranks[1].entries.size(), 3u);
  EXPECT_EQ(file.ranks[1].entries[2].sequence, 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_.parent_path()), {}), 1);  // no draft stays
}

TEST_F(FlightFiles, BadFilesAreRefusedWithAReason) {
  EXPECT_NE(error_of(folder_ / "nothing").find("cannot be read"), std::string::npos);
  EXPECT_NE(error_of(folder_).find("cannot be read"), std::string::npos);
  std::ofstream(folder_ / "empty").close();
  EXPECT_NE(error_of(folder_ / "empty").find("not a flight recorder file"), std::string::npos);
  std::ofstream(folder_ / "text") << "hello, this is text";
  EXPECT_NE(error_of(folder_ / "text").find("not a flight recorder file"), std::string::npos);
}

TEST_F(FlightFiles, EveryCutIsNoticed) {
  write_flight_file(path_, sample());
  const auto whole = std::filesystem::file_size(path_);
  for (std::uintmax_t bytes = 8; bytes < whole; bytes += 37) {
    write_flight_file(path_, sample());
    std::filesystem::resize_file(path_, bytes);
    ASSERT_NE(error_of(path_).find("is cut short"), std::string::npos) << bytes << " bytes: " << error_of(path_);
  }
}

TEST_F(FlightFiles, OtherVersionsAndDamageAreNamed) {
  write_flight_file(path_, sample());
  overwrite(8, 99);
  EXPECT_NE(error_of(path_).find("version 99; this drivetrain reads version 1"), std::string::npos)
      << error_of(path_);
  write_flight_file(path_, sample());
  overwrite(15, 99);  // the number of ranks
  EXPECT_NE(error_of(path_).find("is damaged"), std::string::npos) << error_of(path_);
  write_flight_file(path_, sample());
  std::ofstream(path_, std::ios::app) << "more";
  EXPECT_NE(error_of(path_).find("more after its last rank"), std::string::npos) << error_of(path_);
}

}  // namespace
}  // namespace drivetrain
