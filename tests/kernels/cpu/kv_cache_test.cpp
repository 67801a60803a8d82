#include "kernels/cpu/kv_cache.h"

#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

class KvStoreTest : public ::testing::TestWithParam<DType> {};

TEST_P(KvStoreTest, StoresKeysAndValuesAtTheirPositions) {
  constexpr std::int64_t kBatch = 2, kSeq = 3, kHeads = 4, kKvHeads = 2, kDim = 5, kCapacity = 7, kBegin = 2;
  constexpr std::int64_t kWidth = kKvHeads * kDim, kCols = kHeads * kDim + 2 * kWidth;
  const Host qkv = Host::random(GetParam(), {kBatch * kSeq, kCols}, 1);
  Host cache = Host::filled(GetParam(), {2, kBatch, kCapacity, kWidth}, 9);
  cpu::kv_store(cache, qkv, {kBatch, kSeq, kHeads, kKvHeads, kDim, 1.0f}, kBegin);
  for (std::int64_t i = 0; i < cache.count(); ++i) {
    const std::int64_t column = i % kWidth, position = i / kWidth % kCapacity, b = i / (kWidth * kCapacity) % kBatch;
    const std::int64_t part = i / (kWidth * kCapacity * kBatch), t = position - kBegin;
    const double want =
        t < 0 || t >= kSeq ? 9 : qkv.at((b * kSeq + t) * kCols + kHeads * kDim + part * kWidth + column);
    ASSERT_EQ(cache.at(i), want) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, KvStoreTest, ::testing::Values(DType::kF32, DType::kBF16, DType::kF16));

TEST(KvStore, NothingToStoreIsFine) {
  Host cache = Host::filled(DType::kF32, {2, 1, 4, 2}, 9);
  const Host qkv(DType::kF32, {0, 6});
  cpu::kv_store(cache, qkv, {1, 0, 1, 1, 2, 1.0f}, 4);
  expect_equal(cache, std::vector<double>(16, 9.0));
}

TEST(KvStore, BeyondTheCapacityItThrows) {
  const Host cache(DType::kF32, {2, 1, 4, 2}), qkv(DType::kF32, {2, 6}), half(DType::kBF16, {2, 6});
  EXPECT_THROW(cpu::kv_store(cache, qkv, {1, 2, 1, 1, 2, 1.0f}, 3), Error);
  EXPECT_THROW(cpu::kv_store(cache, qkv, {1, 2, 1, 1, 2, 1.0f}, -1), Error);
  EXPECT_THROW(cpu::kv_store(cache, half, {1, 2, 1, 1, 2, 1.0f}, 0), Error);
}

}  // namespace
}  // namespace drivetrain::testing
