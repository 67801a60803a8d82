#include "kernels/cpu/memory_stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/error.h"

namespace drivetrain::cpu {
namespace {

TEST(MemoryStream, TouchesEveryWholeLineOnce) {
  for (const std::size_t places : {1u, 2u, 3u, 8u}) {
    std::vector<std::byte> memory(64 * 100 + 10);
    stream_through(memory, places);
    const std::size_t touched = 100 / places * places * 64;
    for (std::size_t i = 0; i < memory.size(); ++i)
      ASSERT_EQ(memory[i], std::byte{static_cast<unsigned char>(i < touched ? 1 : 0)}) << i << " of " << places;
  }
}

TEST(MemoryStream, TakesMemoryOfAnySize) {
  std::vector<std::byte> memory(63);
  stream_through(memory, 4);
  stream_through({}, 1);
  EXPECT_EQ(memory[0], std::byte{0});
  EXPECT_THROW(stream_through(memory, 0), Error);
}

}  // namespace
}  // namespace drivetrain::cpu
