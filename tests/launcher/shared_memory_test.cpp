// Shared memory before a start: the size it must have, and which files of killed jobs go.
#include "launcher/shared_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

class OpenMpiLeftovers : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A file that was last written so many seconds ago.
  std::filesystem::path make(const std::string& name, int seconds_ago) const {
    const auto path = folder_ / name;
    std::ofstream(path) << std::string(5000, 'x');
    const std::array<timespec, 2> times = {timespec{time(nullptr) - seconds_ago, 0},
                                           timespec{time(nullptr) - seconds_ago, 0}};
    utimensat(AT_FDCWD, path.c_str(), times.data(), 0);
    return path;
  }
  static std::string own(const std::string& end) {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return std::string("vader_segment.") + host.data() + '.' + std::to_string(geteuid()) + '.' + end;
  }

  const std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "drivetrain-shm-leftovers";
};

TEST_F(OpenMpiLeftovers, GoUnlessMappedYoungOrAnothers) {
  const auto dead = make(own("58f50001.0"), 3600);
  const auto mapped = make(own("58f60001.1"), 3600);
  const auto young = make(own("58f70001.0"), 1);
  const auto other_host = make("vader_segment.elsewhere." + std::to_string(geteuid()) + ".58f50001.0", 3600);
  const auto other_user = make("vader_segment.vm.99999.58f50001.0", 3600);
  const auto other_file = make("something.else", 3600);
  const int fd = open(mapped.c_str(), O_RDWR);
  void* memory = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(remove_open_mpi_leftovers(folder_), 1);
  EXPECT_FALSE(std::filesystem::exists(dead));
  for (const auto& path : {mapped, young, other_host, other_user, other_file})
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  munmap(memory, 4096);
  close(fd);
  EXPECT_EQ(remove_open_mpi_leftovers(folder_), 1);
  EXPECT_FALSE(std::filesystem::exists(mapped));
  EXPECT_EQ(remove_open_mpi_leftovers(folder_ / "nothing"), 0);
}

TEST(SharedMemorySize, TooLittleNamesTheSizeNeededAndTheFix) {
  EXPECT_NO_THROW(check_shared_memory(testing::TempDir(), 2, 4096));
  EXPECT_NO_THROW(check_shared_memory("/no/such/folder", 2, 4096));
  try {
    check_shared_memory(testing::TempDir(), 4, std::size_t{1} << 50);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kPreflight);
    const std::string text = error.what();
    EXPECT_NE(text.find("is too small: 4 ranks need 4503599627370496 bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("--shm-size="), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace drivetrain
