#include "runtime/peaks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "runtime/mfu.h"

namespace drivetrain {
namespace {

double peak(std::string_view name) {
  const auto p = known_peak(name);
  return p ? p->tflops : 0;
}

// MF-01: dense figures, not the sparse ones of the data sheets; source and "dense" at hand.
TEST(Peaks, AreDense) {
  EXPECT_EQ(peak("NVIDIA H100 80GB HBM3"), 989.4);
  EXPECT_EQ(peak("NVIDIA H100 PCIe"), 756);
  EXPECT_EQ(peak("NVIDIA H200"), 989.4);
  EXPECT_EQ(peak("NVIDIA A100-SXM4-80GB"), 312);
  for (const DevicePeak& p : known_peaks()) {
    EXPECT_FALSE(p.source.empty()) << p.device;
    EXPECT_LT(p.tflops, 2501) << p.device << " looks sparse";
  }
}

TEST(Peaks, NamesAsTheDriverGivesThem) {
  const struct {
    const char* name;
    const char* device;
  } names[] = {{"Tesla V100-SXM2-16GB", "V100"},
               {"NVIDIA A100-PCIE-40GB", "A100"},
               {"NVIDIA A100 80GB PCIe", "A100"},
               {"NVIDIA A10G", "A10G"},
               {"NVIDIA A10", "A10"},
               {"NVIDIA RTX A6000", "RTX A6000"},
               {"NVIDIA L40S", "L40S"},
               {"nvidia l40s", "L40S"},
               {"NVIDIA GeForce RTX 3090", "RTX 3090"},
               {"NVIDIA GeForce RTX 4090", "RTX 4090"},
               {"NVIDIA H100 NVL", "H100 NVL"},
               {"NVIDIA H100 SXM5 80GB", "H100 SXM"},
               {"NVIDIA H200 NVL", "H200 NVL"},
               {"NVIDIA GH200 480GB", "GH200"},
               {"NVIDIA H20", "H20"},
               {"NVIDIA B200", "B200"},
               {"NVIDIA GB200", "GB200"}};
  for (const auto& n : names) {
    ASSERT_TRUE(known_peak(n.name).has_value()) << n.name;
    EXPECT_EQ(known_peak(n.name)->device, n.device) << n.name;
  }
  EXPECT_TRUE(known_peak("Tesla V100-SXM2-16GB")->no_bf16);
}

// MF-03: no peak by resemblance, and then no MFU.
TEST(Peaks, UnknownAndSimilarNamesHaveNone) {
  for (const char* name : {"FOO 9000", "", "cpu", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D",
                           "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
                           "NVIDIA RTX 6000", "NVIDIA L40", "AMD Instinct MI300X", "NVIDIA", "NVIDIA A100X"})
    EXPECT_FALSE(known_peak(name).has_value()) << name;
  EXPECT_FALSE(model_flops_utilization(1e9, 1e4, 1, std::nullopt).has_value());
  EXPECT_EQ(model_flops_utilization(1e8, 1000, 1, 1e12), 0.1);
}

TEST(Peaks, EveryRowIsReachedByAName) {
  std::set<std::string_view> devices;
  for (const DevicePeak& p : known_peaks()) {
    EXPECT_TRUE(devices.insert(p.device).second) << p.device << " twice";
    const auto found = known_peak("NVIDIA " + std::string(p.device));
    ASSERT_TRUE(found.has_value()) << p.device;
    EXPECT_EQ(found->device, p.device);
  }
}

// MF-12: micro 2 x 128 tokens x 4 accumulations x 2 data ranks.
TEST(Throughput, CountsAllMicroBatchesOfAllRanks) {
  Throughput t(0);
  const std::int64_t tokens = 2 * 128 * 4 * 2;
  t.add(tokens, 250);
  EXPECT_DOUBLE_EQ(*t.tokens_per_s() * 0.250, 2048);
}

}  // namespace
}  // namespace drivetrain
