// monitor-00000.jsonl of a run folder: what the monitor of one rank saw, one JSON object a line, of three kinds.
//   {"kind": "facts", ...}   once per start of the rank
//   {"kind": "links", ...}   at the start and whenever the state of a link changed; one rank of each host
//   {"kind": "sample", "time_s": unix time, "clock_ns": steady clock (that of the ledger), "process": {...},
//    "host": {...}, "devices": [...], "neighbours": [...]}   these three: one rank of each host
// Keys of samples are those of process_fields(), host_fields() and device_fields(); what is unknown is left out.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/monitor/device_sample.h"
#include "runtime/monitor/host_facts.h"
#include "runtime/monitor/host_sample.h"
#include "runtime/monitor/link.h"
#include "runtime/monitor/neighbours.h"

namespace drivetrain {

struct MonitorSample {
  double time_s = 0;
  std::int64_t clock_ns = 0;
  double cost_ms = 0;  // processor time that the sample before cost
  ProcessSample process;
  std::optional<HostSample> host;
  std::vector<DeviceSample> devices;
  std::vector<Neighbour> neighbours;  // in every tenth sample
};

struct LinkSample {
  double time_s = 0;
  std::int64_t clock_ns = 0;
  bool under_load = false;  // a device was busy: PCIe generations count
  LinkReport report;
};

std::string to_line(const HostFacts& facts);
std::string to_line(const MonitorSample& sample);
std::string to_line(const LinkSample& sample);

struct MonitorLog {
  std::vector<HostFacts> facts;  // one per start of the rank
  std::vector<LinkSample> links;
  std::vector<MonitorSample> samples;
};
// Throws kIo when it cannot be read, kData naming file and line for what the monitor did not write. A last line without
// an end is skipped: the run may still write it.
MonitorLog read_monitor(const std::filesystem::path& file);

}  // namespace drivetrain
