// The NVML provider against a library that is built beside this test and answers from a script.
#include "runtime/monitor/nvml.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/runtime/monitor/made_up_files.h"

namespace drivetrain {
namespace {

constexpr const char* kTwoDevices =
    "count 2\n"
    "0.pci 00000000:17:00.0\n0.uuid GPU-aaaa1111\n0.name NVIDIA H200\n"
    "0.utilization 100\n0.memory_utilization 3\n0.memory_total 1000\n0.memory_used 600\n"
    "0.sm 1365\n0.sm_max 1980\n0.memory_clock 3201\n0.throttle 0x48\n0.power 91500\n0.power_limit 700000\n"
    "0.temperature 88\n0.ecc_corrected 5\n0.ecc_uncorrected 1\n0.processes 3\n0.xid 79\n"
    "0.gen 1\n0.width 8\n0.max_gen 5\n0.max_width 16\n0.replays 7\n"
    "0.nvlink.0.state 1\n0.nvlink.0.peer 00000000:65:00.0\n0.nvlink.0.peer_type 0\n0.nvlink.0.speed 26562\n"
    "0.nvlink.0.replay 1\n0.nvlink.0.recovery 2\n0.nvlink.0.crc 3\n"
    "0.nvlink.1.state 0\n0.nvlink.1.peer_type 2\n"
    "0.1.level 40\n0.1.peer_read 0\n"
    "1.pci 00000000:65:00.0\n1.uuid GPU-bbbb2222\n1.name NVIDIA H200\n"
    "1.utilization error 15\n1.nvlink.0.state 1\n1.nvlink.0.peer_type 2\n1.nvlink.1.state 1\n1.nvlink.1.peer_type "
    "2\n";

class NvmlTest : public testing::Test {
 protected:
  std::unique_ptr<Nvml> open(const std::string& library, const std::string& script, const char* visible = nullptr) {
    files_.write("script", script);
    setenv("FAKE_NVML_SCRIPT", (files_.root() / "script").c_str(), 1);
    setenv("FAKE_NVML_CLOSED", (files_.root() / "closed").c_str(), 1);
    return Nvml::open(std::string(FAKE_NVML_FOLDER) + "/" + library, visible, SystemRoot(files_.root()), why_);
  }
  MadeUpFiles files_;
  std::string why_;
};

void expect_nothing_but_lost(const DeviceSample& sample) {
  for (const auto& field : device_fields()) {
    const bool known = std::string(field.key) == "lost";
    EXPECT_EQ((sample.*field.value).has_value(), known) << field.key;
  }
}

TEST_F(NvmlTest, SamplesWhatTheDeviceTells) {
  const auto nvml = open("whole/libnvidia-ml.so.1", kTwoDevices);
  ASSERT_TRUE(nvml) << why_;
  const auto samples = nvml->sample();
  ASSERT_EQ(samples.size(), 2u);
  const DeviceSample& s = samples[0];
  EXPECT_EQ(s.pci, "0000:17:00.0");
  EXPECT_EQ(s.name, "NVIDIA H200");
  EXPECT_EQ(s.utilization, 100);
  EXPECT_EQ(s.memory_utilization, 3);
  EXPECT_EQ(s.memory_used, 600);
  EXPECT_EQ(s.memory_total, 1000);
  EXPECT_EQ(s.sm_mhz, 1365);
  EXPECT_EQ(s.sm_max_mhz, 1980);
  EXPECT_EQ(s.memory_mhz, 3201);
  EXPECT_EQ(s.throttle, 0x48);
  EXPECT_EQ(s.power_w, 91.5);
  EXPECT_EQ(s.power_limit_w, 700);
  EXPECT_EQ(s.temperature_c, 88);
  EXPECT_EQ(s.ecc_corrected, 5);
  EXPECT_EQ(s.ecc_uncorrected, 1);
  EXPECT_EQ(s.processes, 3);
  EXPECT_EQ(s.last_xid, 79);
  EXPECT_EQ(s.lost, 0);
  // The second fell off the bus and supports nothing else.
  EXPECT_EQ(samples[1].lost, 1);
  expect_nothing_but_lost(samples[1]);
}

TEST_F(NvmlTest, KeepsTheLastXid) {
  const auto nvml = open("whole/libnvidia-ml.so.1", std::string(kTwoDevices) + "1.xid 48\n");
  ASSERT_TRUE(nvml) << why_;
  nvml->sample();
  const auto later = nvml->sample();
  EXPECT_EQ(later[0].last_xid, 79);
  EXPECT_EQ(later[1].last_xid, 48);
}

TEST_F(NvmlTest, ReportsLinks) {
  files_.write("sys/bus/pci/devices/0000:17:00.0/numa_node", "1");
  const auto nvml = open("whole/libnvidia-ml.so.1", kTwoDevices);
  ASSERT_TRUE(nvml) << why_;
  const LinkReport report = nvml->inspect();
  ASSERT_EQ(report.links.size(), 6u);
  const Link& pcie = report.links[0];
  EXPECT_EQ(pcie.kind, LinkKind::kPcie);
  EXPECT_EQ(pcie.name, "0000:17:00.0");
  EXPECT_EQ(pcie.gen, 1);
  EXPECT_EQ(pcie.width, 8);
  EXPECT_EQ(pcie.max_gen, 5);
  EXPECT_EQ(pcie.max_width, 16);
  EXPECT_EQ(pcie.replays, 7);
  EXPECT_EQ(pcie.numa_node, 1);
  EXPECT_DOUBLE_EQ(pcie.gb_per_s, 2);
  EXPECT_NEAR(pcie.max_gb_per_s, 63.02, 0.01);
  const Link& nvlink = report.links[1];
  EXPECT_EQ(nvlink.kind, LinkKind::kNvlink);
  EXPECT_EQ(nvlink.name, "0000:17:00.0 nvlink 0");
  EXPECT_EQ(nvlink.peer, "0000:65:00.0");
  EXPECT_TRUE(nvlink.up);
  EXPECT_NEAR(nvlink.gb_per_s, 26.562, 1e-9);
  EXPECT_EQ(nvlink.replays, 1);
  EXPECT_EQ(nvlink.recoveries, 2);
  EXPECT_EQ(nvlink.crc_errors, 3);
  EXPECT_FALSE(report.links[2].up);
  EXPECT_EQ(report.links[2].peer, "switch");
  EXPECT_EQ(report.links[2].gb_per_s, 0);
  ASSERT_EQ(report.pairs.size(), 1u);
  EXPECT_EQ(report.pairs[0].a, "0000:17:00.0");
  EXPECT_EQ(report.pairs[0].b, "0000:65:00.0");
  EXPECT_EQ(report.pairs[0].path, "NODE");
  EXPECT_EQ(report.pairs[0].nvlinks, 1);
  EXPECT_EQ(report.pairs[0].peer_to_peer, true);
}

TEST_F(NvmlTest, DevicesAreKnownByAddressNotByIndex) {
  const auto nvml = open("whole/libnvidia-ml.so.1", kTwoDevices, "GPU-bbbb");
  ASSERT_TRUE(nvml) << why_;
  ASSERT_EQ(nvml->devices().size(), 1u);
  EXPECT_EQ(nvml->devices()[0].pci, "0000:65:00.0");
  EXPECT_EQ(nvml->sample()[0].lost, 1);
}

TEST_F(NvmlTest, IndicesCountInPciOrderWhateverNvmlSays) {
  const auto nvml = open("whole/libnvidia-ml.so.1",
                         "count 3\n0.pci 00000000:65:00.0\n0.uuid GPU-b\n0.name B\n"
                         "2.pci 00000000:17:00.0\n2.uuid GPU-a\n2.name A\n",  // the one between cannot be read
                         "0");
  ASSERT_TRUE(nvml) << why_;
  ASSERT_EQ(nvml->devices().size(), 1u);
  EXPECT_EQ(nvml->devices()[0].uuid, "GPU-a");
  EXPECT_EQ(nvml->sample()[0].pci, "0000:17:00.0");
}

TEST_F(NvmlTest, AnOldDriverWithoutSensorsLeavesGaps) {
  const auto nvml = open("bare/libnvidia-ml.so.1", kTwoDevices);
  ASSERT_TRUE(nvml) << why_;
  const auto samples = nvml->sample();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].pci, "0000:17:00.0");
  expect_nothing_but_lost(samples[0]);
  EXPECT_EQ(nvml->inspect().links.size(), 2u);
}

TEST_F(NvmlTest, SaysWhyThereIsNone) {
  EXPECT_FALSE(open("old/libnvidia-ml.so.1", kTwoDevices));
  EXPECT_NE(why_.find("nvmlDeviceGetPciInfo_v3"), std::string::npos) << why_;
  EXPECT_FALSE(open("nowhere/libnvidia-ml.so.1", kTwoDevices));
  EXPECT_NE(why_.find("nowhere"), std::string::npos) << why_;
  EXPECT_FALSE(open("whole/libnvidia-ml.so.1", "init error 9\n"));
  EXPECT_NE(why_.find("Driver Not Loaded"), std::string::npos) << why_;
  EXPECT_FALSE(open("whole/libnvidia-ml.so.1", "count error 999\n"));
  EXPECT_NE(why_.find("count devices"), std::string::npos) << why_;
  EXPECT_FALSE(open("whole/libnvidia-ml.so.1", kTwoDevices, "-1"));
  EXPECT_NE(why_.find("CUDA_VISIBLE_DEVICES"), std::string::npos) << why_;
}

TEST_F(NvmlTest, ClosesWhatItOpened) {
  open("whole/libnvidia-ml.so.1", kTwoDevices).reset();
  EXPECT_TRUE(std::filesystem::exists(files_.root() / "closed"));
}

TEST(VisibleDevices, FollowsTheCudaRules) {
  const std::vector<DeviceId> all{{"0000:17:00.0", "GPU-aaaa1", ""}, {"0000:65:00.0", "GPU-aaab2", ""}, {"", "", ""}};
  using List = std::vector<std::size_t>;
  EXPECT_EQ(visible_devices(all, nullptr), (List{0, 1, 2}));
  EXPECT_EQ(visible_devices(all, ""), List{});
  EXPECT_EQ(visible_devices(all, "1"), List{1});
  EXPECT_EQ(visible_devices(all, "2, 0"), (List{2, 0}));
  EXPECT_EQ(visible_devices(all, "0,7,1"), List{0});  // nothing from the first that names none
  EXPECT_EQ(visible_devices(all, "1,-1,0"), List{1});
  EXPECT_EQ(visible_devices(all, "GPU-aaab"), List{1});
  EXPECT_EQ(visible_devices(all, "GPU-aaa"), List{});  // two of them
  EXPECT_EQ(visible_devices(all, "MIG-GPU-aaab2/1/0"), List{1});
  EXPECT_EQ(visible_devices(all, "GPU-aaab2,GPU-aaaa1"), (List{1, 0}));
}

TEST(ThrottleText, NamesWhatHoldsTheClockBack) {
  EXPECT_EQ(throttle_text(0), "");
  EXPECT_EQ(throttle_text(1), "");  // idle
  EXPECT_EQ(throttle_text(0x48), "hardware slowdown, hardware thermal slowdown");
  EXPECT_EQ(throttle_text(0x4), "software power cap");
}

}  // namespace
}  // namespace drivetrain
