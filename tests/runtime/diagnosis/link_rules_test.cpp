#include "runtime/diagnosis/link_rules.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

LinkFacts pcie4(double measured) {
  return {.a = "GPU 2",
          .b = "GPU 3",
          .measured_gbps = measured,
          .gen = 4,
          .max_gen = 4,
          .width = 16,
          .max_width = 16,
          .peer_to_peer = true};
}
std::vector<LinkFinding> one(const LinkFacts& link) {
  return link_findings(std::vector{link});
}

TEST(LinkRules, WhatAKindGives) {
  EXPECT_NEAR(expected_gbps(pcie4(0), true), 24.6, 0.1);
  LinkFacts nvlink{.medium = LinkMedium::kNvlink, .lanes_up = 17, .lanes = 18, .lane_gbps = 25};
  EXPECT_NEAR(expected_gbps(nvlink, true), 360, 1e-9);
  EXPECT_NEAR(expected_gbps(nvlink, false), 340, 1e-9);
  EXPECT_NEAR(expected_gbps({.medium = LinkMedium::kTcp, .nominal_gbps = 12.5}, true), 11.25, 1e-9);
  EXPECT_NEAR(expected_gbps({.medium = LinkMedium::kSharedMemory, .memory_gbps = 20}, true), 10, 1e-9);
  EXPECT_EQ(expected_gbps({}, true), 0);
}

TEST(LinkRules, NamesTheLinkAndWhyItIsSlow) {
  LinkFacts slow = pcie4(3.1);
  slow.gen = 1;
  slow.calibrated_gbps = 3.2;  // slow from the start: calibration alone would not notice
  const auto found = link_findings(std::vector{pcie4(22), slow});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].sentence,
            "GPU 2 - GPU 3 (PCIe) ran at 3.1 of 24.6 GB/s expected: link trained Gen1 x16 (max Gen4 x16)");
  EXPECT_NE(found[0].action.find("reseat"), std::string::npos);
}

// nvtop#6, jan#183: idle devices drop to Gen1 by design.
TEST(LinkRules, AnIdleLinkMaySaveItsGenerationButNotItsWidth) {
  LinkFacts idle = pcie4(0);
  idle.gen = 1;
  idle.under_load = false;
  EXPECT_TRUE(one(idle).empty());
  idle.width = 4;
  EXPECT_EQ(one(idle).size(), 1U);
}

// nccl#1309: GeForce without peer access below one switch is slow by construction, not by a fault.
TEST(LinkRules, ExpectsLessWithoutPeerAccessBelowOneSwitch) {
  LinkFacts link = pcie4(6);
  EXPECT_EQ(one(link).size(), 1U);
  link.peer_to_peer = false;
  link.shared_uplink = true;
  EXPECT_NEAR(expected_gbps(link, true), 6.1, 0.1);
  EXPECT_TRUE(one(link).empty());
}

TEST(LinkRules, AgainstItsOwnCalibration) {
  LinkFacts tcp{.a = "hostA", .b = "hostB", .medium = LinkMedium::kTcp, .measured_gbps = 0.4, .calibrated_gbps = 1.1};
  const auto found = one(tcp);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].sentence.find("ran at 0.4 of 1.1 GB/s expected, 1.1 at start-up"), std::string::npos)
      << found[0].sentence;
  tcp.measured_gbps = 0.9;
  EXPECT_TRUE(one(tcp).empty());
}

// Azure/azhpc-diagnostics#73: a lane down; dstack#1167: all lanes up and yet slow. Both are said, the slower first.
TEST(LinkRules, LanesDownAndSlowDespiteAllLanes) {
  LinkFacts down{.a = "GPU 0",
                 .b = "GPU 1",
                 .medium = LinkMedium::kNvlink,
                 .measured_gbps = 340,
                 .lanes_up = 17,
                 .lanes = 18,
                 .lane_gbps = 25};
  LinkFacts dead = down;
  dead.a = "GPU 4";
  dead.lanes_up = 18;
  dead.measured_gbps = 12;
  const auto found = link_findings(std::vector{down, dead});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].a, "GPU 4");
  EXPECT_NE(found[1].sentence.find("17 of 18 NVLink lanes are up"), std::string::npos);
}

TEST(LinkRules, NewErrorsAreSaidEvenAtFullSpeed) {
  LinkFacts link = pcie4(24);
  EXPECT_TRUE(one(link).empty());
  link.errors = 12;
  ASSERT_EQ(one(link).size(), 1U);
  EXPECT_NE(one(link)[0].sentence.find("12 new link errors"), std::string::npos);
}

}  // namespace
}  // namespace drivetrain
