// Event files byte by byte; that TensorBoard's own format is meant is checked by the end-to-end test's reader.
#include "runtime/telemetry/tensorboard_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "kernels/error.h"
#include "runtime/telemetry/crc32c.h"
#include "runtime/telemetry/listen_address.h"

namespace drivetrain {
namespace {

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// The data of each record; checks lengths and checksums on the way.
std::vector<std::string> records(const std::string& bytes) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length = 0;
    std::uint32_t length_crc = 0, data_crc = 0;
    std::memcpy(&length, &bytes[at], 8);
    std::memcpy(&length_crc, &bytes[at + 8], 4);
    EXPECT_EQ(length_crc, masked_crc32c(std::string_view(bytes).substr(at, 8)));
    out.push_back(bytes.substr(at + 12, length));
    std::memcpy(&data_crc, &bytes[at + 12 + length], 4);
    EXPECT_EQ(data_crc, masked_crc32c(out.back()));
    at += 16 + length;
  }
  return out;
}

class TensorboardFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("drivetrain_events_" + std::to_string(getpid()));
};

TEST(Crc32c, IsThatOfTheRfc) {  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  // 0xe3069283 rotated right by 15 is 0x2507c60d; plus 0xa282ead8.
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
}

TEST_F(TensorboardFileTest, HoldsEncodedEvents) {
  TensorboardFile file(folder_, "host");
  file.restart_after(299);
  file.add(300, {{"loss", 2.5}, {"lr", -1}});
  const auto events = records(content(file.path()));
  ASSERT_EQ(events.size(), 3u);
  const std::string after_time = "\x10";  // key of step, behind the key and the 8 bytes of wall_time
  EXPECT_EQ(events[0].substr(9), after_time + std::string("\0\x1a\x0d", 3) + "brain.Event:2");
  EXPECT_EQ(events[1].substr(9), after_time + "\xac\x02" + "\x3a\x02\x08\x01");
  const std::string loss = std::string("\x0a\x04loss\x15\x00\x00\x20\x40", 11);
  const std::string lr = std::string("\x0a\x02lr\x15\x00\x00\x80\xbf", 9);
  EXPECT_EQ(events[2].substr(9), after_time + "\xac\x02" + "\x2a\x18" + "\x0a\x0b" + loss + "\x0a\x09" + lr);
}

TEST_F(TensorboardFileTest, EachOpeningIsAFileOfItsOwn) {
  const TensorboardFile first(folder_, "host"), second(folder_, "host");
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(first.path().filename().string().rfind("events.out.tfevents.", 0), 0u);
}

TEST_F(TensorboardFileTest, NamesAFolderThatCannotBe) {
  std::ofstream(folder_.string()) << "a file";
  try {
    const TensorboardFile file(folder_ / "x", "host");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(error.what()).find(folder_.string()), std::string::npos);
  }
}

TEST(ListenAddress, IsLoopbackUnlessToldOtherwise) {
  const auto where = [](const char* text) {
    const auto address = listen_address(text);
    return address ? address->host + " " + std::to_string(address->port) : "";
  };
  EXPECT_EQ(where("9400"), "127.0.0.1 9400");
  EXPECT_EQ(where("0"), "127.0.0.1 0");
  EXPECT_EQ(where("0.0.0.0:9400"), "0.0.0.0 9400");
  EXPECT_EQ(where("[::1]:9400"), "[::1] 9400");
  for (const char* bad : {"", "on", "65536", "-1", "94 00", "host:9400", "1.2.3.4:", ":9400", "::1", "9400:"})
    EXPECT_EQ(where(bad), "") << bad;
}

}  // namespace
}  // namespace drivetrain
