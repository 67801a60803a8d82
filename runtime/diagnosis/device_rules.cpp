#include "runtime/diagnosis/device_rules.h"

#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

constexpr double kBusy = 0.8;        // utilisation counts any resident kernel, so a computing device reads above 0.9
constexpr double kIdle = 0.4;        // half of a busy one
constexpr double kMemoryBusy = 0.6;  // share of time with memory traffic; streaming kernels read 0.6 to 1
// A GPU inside a collective draws little above idle: 70 to 100 W of 700 W were seen (nccl#968); training draws above half.
constexpr double kSpinPower = 0.3;
constexpr double kHotCelsius = 90;    // data-centre GPUs begin to slow down between 83 and 92
constexpr double kClockShare = 0.93;  // boost clocks of healthy peers differ by up to 5 %
constexpr double kPowerFall = 0.6;    // of the level before; load changes between steps stay above

// Medians of this many readings are compared, so that one step's pause is no drop.
constexpr std::size_t kLevel = 5;

}  // namespace

const char* name(DeviceState state) {
  switch (state) {
    case DeviceState::kComputing:
      return "computing";
    case DeviceState::kSpinning:
      return "spinning in a collective";
    case DeviceState::kMemoryBound:
      return "bound by memory bandwidth";
    case DeviceState::kStarved:
      return "starved";
    case DeviceState::kUnknown:
      break;
  }
  return "unknown";
}

DeviceState device_state(const DeviceFacts& d) {
  if (!d.utilisation) return DeviceState::kUnknown;
  const double memory = d.memory_utilisation.value_or(0);
  if (*d.utilisation >= kBusy) {
    if (d.power_w && d.power_limit_w && *d.power_w < kSpinPower * *d.power_limit_w) return DeviceState::kSpinning;
    return DeviceState::kComputing;
  }
  if (memory >= kMemoryBusy) return DeviceState::kMemoryBound;
  return *d.utilisation < kIdle ? DeviceState::kStarved : DeviceState::kUnknown;
}

std::vector<DeviceFinding> device_findings(std::span<const DeviceFacts> devices, int rank) {
  using Kind = DeviceFinding::Kind;
  const DeviceFacts& d = devices[static_cast<std::size_t>(rank)];
  std::vector<DeviceFinding> found;
  const auto add = [&](Kind kind, std::string sentence, std::string action) {
    found.push_back({.kind = kind,
                     .rank = rank,
                     .sentence = "device of rank " + std::to_string(rank) + " " + sentence,
                     .action = std::move(action)});
  };
  switch (device_state(d)) {
    case DeviceState::kSpinning:
      add(Kind::kState,
          "is " + in_percent(*d.utilisation) + " busy at " + fixed(*d.power_w, 0) + " W of " +
              fixed(*d.power_limit_w, 0) + " W: it spins in a collective, waiting for another rank",
          "look at the rank it waits for, not at this one");
      break;
    case DeviceState::kMemoryBound:
      add(Kind::kState,
          "is " + in_percent(*d.utilisation) + " busy while its memory is " + in_percent(*d.memory_utilisation) +
              " busy: memory bandwidth is the bound",
          "larger batch.micro, or fewer and fused memory-bound operators");
      break;
    case DeviceState::kStarved:
      add(Kind::kState,
          "is " + in_percent(*d.utilisation) +
              " busy and its memory idle: it waits for data, copies or kernel launches",
          "bench --no-compute tells whether data is the limit (data.workers); else raise batch.micro");
      break;
    case DeviceState::kComputing:
    case DeviceState::kUnknown:
      break;
  }
  if (d.temperature_c && *d.temperature_c > kHotCelsius)
    add(Kind::kHot, "is at " + fixed(*d.temperature_c, 0) + " C (limit " + fixed(kHotCelsius, 0) + " C)",
        "check airflow, fans and thermal paste; lower the power limit meanwhile");
  if (!d.throttle.empty()) add(Kind::kThrottled, "throttles: " + d.throttle, "check cooling and power supply");
  std::vector<double> clocks;
  for (std::size_t j = 0; j < devices.size(); ++j)
    if (static_cast<int>(j) != rank && devices[j].clock_mhz) clocks.push_back(*devices[j].clock_mhz);
  const double usual = clocks.empty() ? d.max_clock_mhz.value_or(0) : median(std::move(clocks));
  // An idle device lowers its clock by itself.
  const bool working = !d.utilisation || *d.utilisation >= kBusy;
  if (d.clock_mhz && working && *d.clock_mhz < kClockShare * usual)
    add(Kind::kSlowClock, "runs at " + fixed(*d.clock_mhz, 0) + " MHz, its peers at " + fixed(usual, 0) + " MHz",
        "check throttle reasons, temperature, power limit and locked clocks (nvidia-smi -q -d CLOCK,PERFORMANCE)");
  return found;
}

DeviceFinding power_drop(std::span<const double> power_w, int rank) {
  DeviceFinding f{.kind = DeviceFinding::Kind::kPowerDrop, .rank = rank, .sentence = {}, .action = {}};
  for (std::size_t i = kLevel; i + kLevel <= power_w.size(); ++i) {
    const auto level = [&](std::size_t from) {
      const auto part = power_w.subspan(from, kLevel);
      return median({part.begin(), part.end()});
    };
    const double before = level(i - kLevel), after = level(i);
    if (after >= kPowerFall * before) continue;
    f.sentence = "device of rank " + std::to_string(rank) + " fell from " + fixed(before, 0) + " W to " +
                 fixed(after, 0) + " W at once";
    f.action = "it stopped computing or was capped: see its rank's phase, XID errors and power brake";
    return f;
  }
  return f;
}

}  // namespace drivetrain
