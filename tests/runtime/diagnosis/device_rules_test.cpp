#include "runtime/diagnosis/device_rules.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

using Kind = DeviceFinding::Kind;

bool says(const std::vector<DeviceFinding>& found, Kind kind, const std::string& text) {
  for (const DeviceFinding& f : found)
    if (f.kind == kind && f.sentence.find(text) != std::string::npos && !f.action.empty()) return true;
  return false;
}
std::vector<DeviceFacts> healthy(int n) {
  return std::vector<DeviceFacts>(static_cast<std::size_t>(n), {.utilisation = 0.97,
                                                                .memory_utilisation = 0.5,
                                                                .power_w = 620,
                                                                .power_limit_w = 700,
                                                                .temperature_c = 68,
                                                                .clock_mhz = 1980,
                                                                .max_clock_mhz = 1980});
}

TEST(DeviceRules, TheTableOfUtilisationAndMemory) {
  const struct {
    double utilisation, memory, power;
    DeviceState state;
  } table[] = {{0.97, 0.5, 620, DeviceState::kComputing},
               {1.0, 0.02, 92, DeviceState::kSpinning},
               {0.5, 0.9, 400, DeviceState::kMemoryBound},
               {0.1, 0.05, 90, DeviceState::kStarved},
               {0.6, 0.3, 400, DeviceState::kUnknown}};
  for (const auto& row : table)
    EXPECT_EQ(device_state({.utilisation = row.utilisation,
                            .memory_utilisation = row.memory,
                            .power_w = row.power,
                            .power_limit_w = 700}),
              row.state)
        << row.utilisation;
  EXPECT_EQ(device_state({}), DeviceState::kUnknown);
  // Without power a busy device cannot be told from a spinning one.
  EXPECT_EQ(device_state({.utilisation = 1.0}), DeviceState::kComputing);
}

TEST(DeviceRules, HealthyAndUnknownDevicesRaiseNothing) {
  const std::vector<DeviceFacts> devices = healthy(4);
  for (int r = 0; r < 4; ++r) EXPECT_TRUE(device_findings(devices, r).empty());
  EXPECT_TRUE(device_findings(std::vector<DeviceFacts>(2), 0).empty());
}

TEST(DeviceRules, BusyAtLowPowerSpins) {
  std::vector<DeviceFacts> devices = healthy(2);
  devices[0].power_w = 92;
  EXPECT_TRUE(
      says(device_findings(devices, 0), Kind::kState, "97 % busy at 92 W of 700 W: it spins in a collective"));
  EXPECT_TRUE(device_findings(devices, 1).empty());
}

TEST(DeviceRules, HeatAboveNinetyAndThrottling) {
  std::vector<DeviceFacts> devices = healthy(2);
  devices[1].temperature_c = 90;
  EXPECT_TRUE(device_findings(devices, 1).empty());
  devices[1].temperature_c = 91;
  devices[1].throttle = "hardware thermal slowdown";
  EXPECT_TRUE(says(device_findings(devices, 1), Kind::kHot, "91 C"));
  EXPECT_TRUE(says(device_findings(devices, 1), Kind::kThrottled, "hardware thermal slowdown"));
}

TEST(DeviceRules, AClockBelowThePeersIsSaidOfABusyDevice) {
  std::vector<DeviceFacts> devices = healthy(4);
  devices[2].clock_mhz = 1365;
  EXPECT_TRUE(says(device_findings(devices, 2), Kind::kSlowClock, "1365 MHz, its peers at 1980 MHz"));
  EXPECT_TRUE(device_findings(devices, 1).empty());
  devices[2].utilisation = 0.6;
  devices[2].memory_utilisation = 0.1;
  EXPECT_TRUE(device_findings(devices, 2).empty()) << "an idle device clocks down by itself";
  // Alone, against its own maximum.
  std::vector<DeviceFacts> alone = healthy(1);
  alone[0].clock_mhz = 1200;
  EXPECT_TRUE(says(device_findings(alone, 0), Kind::kSlowClock, "1200 MHz"));
}

TEST(DeviceRules, AFallOfPowerThatLasts) {
  std::vector<double> power(20, 600);
  EXPECT_TRUE(power_drop(power, 3).sentence.empty());
  power[10] = 90;  // one pause between steps
  EXPECT_TRUE(power_drop(power, 3).sentence.empty());
  for (std::size_t i = 12; i < 20; ++i) power[i] = 150;
  const DeviceFinding f = power_drop(power, 3);
  EXPECT_EQ(f.rank, 3);
  EXPECT_NE(f.sentence.find("fell from 600 W to 150 W"), std::string::npos) << f.sentence;
}

}  // namespace
}  // namespace drivetrain
