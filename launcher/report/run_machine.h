// What the monitor files of a run (telemetry.monitor) say about devices, hosts and links while it ran, condensed to what
// rules judge. Empty where the run was not monitored.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/diagnosis/incident_rules.h"
#include "runtime/monitor/link.h"

namespace drivetrain {

struct RunMachine {
  std::vector<DeviceFacts> devices;  // by world rank, medians over the run; empty when no rank has one
  IncidentFacts facts;               // what hosts and processes tell; ranks in order
  std::vector<std::string> device_remarks, link_remarks;
  std::vector<DevicePair> pairs;  // of the first host that has devices
};

// Files that cannot be read are named in device_remarks and left out.
RunMachine read_machine(const std::filesystem::path& run_folder, int world_size);

}  // namespace drivetrain
