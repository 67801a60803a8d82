// Links from a made-up /sys and from a script, and what their state alone says is wrong.
#include <gtest/gtest.h>

#include "kernels/error.h"
#include "runtime/monitor/link_json.h"
#include "runtime/monitor/sysfs_links.h"
#include "tests/runtime/monitor/made_up_files.h"

namespace drivetrain {
namespace {

void add_pci_device(const MadeUpFiles& files, const std::string& address, const std::string& pci_class) {
  const std::string folder = "sys/bus/pci/devices/" + address + "/";
  files.write(folder + "class", pci_class);
  files.write(folder + "current_link_speed", "8.0 GT/s PCIe");
  files.write(folder + "current_link_width", "4");
  files.write(folder + "max_link_speed", "16.0 GT/s PCIe");
  files.write(folder + "max_link_width", "16");
  files.write(folder + "numa_node", "1");
  files.write(folder + "aer_dev_correctable", "RxErr 0\nBadTLP 11\nTOTAL_ERR_COR 12");
  files.link(folder + "driver", "../../../bus/pci/drivers/nvidia");
}

TEST(SysfsLinks, ReadsDevicesAndInterfaces) {
  const MadeUpFiles files;
  add_pci_device(files, "0000:17:00.0", "0x030200");
  add_pci_device(files, "0000:00:1f.0", "0x060100");                  // a bridge carries no training of its own
  files.write("sys/bus/pci/devices/0000:00:02.0/class", "0x030000");  // graphics on the package: no link
  files.write("sys/class/net/eth0/speed", "25000");
  files.write("sys/class/net/eth0/operstate", "up");
  files.write("sys/class/net/eth0/statistics/rx_crc_errors", "3");
  files.write("hw/0000:31:00.0/numa_node", "0");
  files.link("hw/0000:31:00.0/driver", "../drivers/mlx5_core");
  files.link("sys/class/net/eth0/device", files.root() / "hw/0000:31:00.0");
  files.write("sys/class/net/br0/operstate", "down");
  files.write("sys/class/net/br0/speed", "-1");
  files.write("sys/class/net/lo/operstate", "unknown");
  const LinkReport report = sysfs_links(SystemRoot(files.root()))->inspect();
  ASSERT_EQ(report.links.size(), 4u);
  const Link& pcie = report.links[0];
  EXPECT_EQ(pcie.kind, LinkKind::kPcie);
  EXPECT_EQ(pcie.device, "0000:17:00.0");
  EXPECT_EQ(pcie.driver, "nvidia");
  EXPECT_EQ(pcie.gen, 3);
  EXPECT_EQ(pcie.width, 4);
  EXPECT_EQ(pcie.max_gen, 4);
  EXPECT_EQ(pcie.max_width, 16);
  EXPECT_EQ(pcie.numa_node, 1);
  EXPECT_EQ(pcie.replays, 12);
  EXPECT_NEAR(pcie.gb_per_s, 3.938, 1e-3);
  EXPECT_EQ(report.links[1].name, "br0");
  EXPECT_FALSE(report.links[1].up);
  EXPECT_EQ(report.links[1].driver, "virtual");
  EXPECT_EQ(report.links[1].gb_per_s, 0);
  const Link& nic = report.links[2];
  EXPECT_EQ(nic.kind, LinkKind::kTcp);
  EXPECT_EQ(nic.name, "eth0");
  EXPECT_EQ(nic.driver, "mlx5_core");
  EXPECT_EQ(nic.device, "0000:31:00.0");
  EXPECT_TRUE(nic.up);
  EXPECT_EQ(nic.crc_errors, 3);
  EXPECT_EQ(nic.numa_node, 0);
  EXPECT_DOUBLE_EQ(nic.gb_per_s, 3.125);
  EXPECT_EQ(report.links[3].kind, LinkKind::kSharedMemory);
  EXPECT_FALSE(report.links[3].up);  // this made-up machine has no /dev/shm
}

TEST(SysfsLinks, AnEmptySysIsNoError) {
  const MadeUpFiles files;
  EXPECT_EQ(sysfs_links(SystemRoot(files.root()))->inspect().links.size(), 1u);
}

TEST(PcieRates, AreThoseOfTheSpecification) {
  EXPECT_DOUBLE_EQ(pcie_gb_per_s(1, 16), 4);
  EXPECT_NEAR(pcie_gb_per_s(4, 16), 31.51, 0.01);
  EXPECT_NEAR(pcie_gb_per_s(6, 16), 121, 0.1);
  EXPECT_EQ(pcie_gb_per_s(0, 16), 0);
  EXPECT_EQ(pcie_gb_per_s(7, 16), 0);
  EXPECT_EQ(pcie_gen(2.5), 1);
  EXPECT_EQ(pcie_gen(32), 5);
  EXPECT_EQ(pcie_gen(3), 0);
}

TEST(PciAddress, IsThatOfSys) {
  EXPECT_EQ(pci_address("00000000:17:00.0"), "0000:17:00.0");
  EXPECT_EQ(pci_address("0000:AF:00.0"), "0000:af:00.0");
  EXPECT_EQ(pci_address("00010000:17:00.0"), "00010000:17:00.0");  // a real 32-bit domain
}

constexpr const char* kScript = R"({"links": [
  {"kind": "pcie", "name": "0000:17:00.0", "device": "0000:17:00.0", "gen": 1, "width": 16, "max_gen": 4,
   "max_width": 16, "replays": 2},
  {"kind": "nvlink", "name": "a 0", "device": "a", "peer": "b", "up": false},
  {"kind": "nvlink", "name": "b 0", "device": "b", "peer": "a", "gb_per_s": 26.5}],
 "pairs": [{"a": "a", "b": "b", "path": "PIX", "nvlinks": 1, "peer_to_peer": false}]})";

TEST(ScriptedLinks, RoundTrips) {
  const LinkReport report = scripted_links(kScript, "s.json")->inspect();
  ASSERT_EQ(report.links.size(), 3u);
  EXPECT_EQ(report.links[0].replays, 2);
  EXPECT_FALSE(report.links[0].crc_errors);
  EXPECT_FALSE(report.links[1].up);
  EXPECT_EQ(report.links[2].gb_per_s, 26.5);
  EXPECT_EQ(report.pairs[0].peer_to_peer, false);
  EXPECT_EQ(to_json(report), nlohmann::json::parse(kScript));
}

TEST(ScriptedLinks, PlaysItsFramesThenKeepsTheLast) {
  const auto links = scripted_links(R"({"frames": [{"links": [{"kind": "tcp", "name": "x"}]}, {"links": []}]})", "s");
  EXPECT_EQ(links->inspect().links.size(), 1u);
  EXPECT_EQ(links->inspect().links.size(), 0u);
  EXPECT_EQ(links->inspect().links.size(), 0u);
}

TEST(ScriptedLinks, NamesWhatIsWrong) {
  const std::pair<const char*, const char*> bad[] = {
      {"{", "s.json: is not JSON"},
      {"[]", "s.json: wants {\"links\": [...]}"},
      {R"({"links": [{"kind": "carrier pigeon", "name": "x"}]})",
       "s.json: kind 'carrier pigeon' is not one of nvlink | pcie | shared memory | tcp"},
      {R"({"links": [{"kind": "tcp"}]})", "s.json: a link of kind 'tcp' has no name"},
      {R"({"links": [{"kind": "tcp", "name": "x", "speed": 1}]})", "s.json: speed: unknown field"},
      {R"({"links": [{"kind": "tcp", "name": "x", "gen": "4"}]})", "s.json: gen: \"4\" has the wrong type"},
      {R"({"links": [7]})", "s.json: wants an object, got 7"},
      {R"({"frames": []})", "s.json: frames: is empty, wants at least one report"},
  };
  for (const auto& [text, fault] : bad) {
    try {
      scripted_links(text, "s.json");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), fault);
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    }
  }
}

TEST(LinkFaults, AnIdleDeviceMayBeSlowButNotNarrow) {
  LinkReport report;
  report.links.push_back(
      {.kind = LinkKind::kPcie, .name = "g", .gen = 1, .width = 16, .max_gen = 4, .max_width = 16});
  EXPECT_TRUE(link_faults(report, report, false).empty());
  ASSERT_EQ(link_faults(report, report, true).size(), 1u);
  EXPECT_EQ(link_faults(report, report, true)[0],
            "g: PCIe trained at gen 1 x16, could do gen 4 x16: check slot, riser and BIOS");
  report.links[0].width = 4;
  EXPECT_EQ(link_faults(report, report, false).size(), 1u);
  report.links[0].width = 0;  // unknown
  EXPECT_TRUE(link_faults(report, report, false).empty());
}

TEST(LinkFaults, OneLaneDownAndGrowingCounters) {
  LinkReport before;
  for (const char* name : {"a 0", "a 1", "b 0", "b 1"})
    before.links.push_back({.kind = LinkKind::kNvlink, .name = name, .device = {name[0]}, .crc_errors = 5});
  LinkReport now = before;
  EXPECT_TRUE(link_faults(now, before, true).empty());
  now.links[3].up = false;
  now.links[0].crc_errors = 9;
  const auto faults = link_faults(now, before, true);
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0], "a 0: 4 CRC errors since the run began");
  EXPECT_EQ(faults[1], "b 1: went down during the run");
  EXPECT_EQ(faults[2], "b: 1 NVLinks are up, its neighbours have 2");
}

}  // namespace
}  // namespace drivetrain
