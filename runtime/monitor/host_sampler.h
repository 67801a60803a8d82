// Reads HostSample and ProcessSample from /proc and /sys. Holds the counters of the sample before; one thread.
#pragma once
#include <string>
#include <vector>

#include "runtime/monitor/counters.h"
#include "runtime/monitor/host_sample.h"
#include "runtime/monitor/system_root.h"

namespace drivetrain {

class HostSampler {
 public:
  explicit HostSampler(const SystemRoot& root);
  // `now_s` of a steady clock.
  HostSample sample(double now_s);

 private:
  void add_cpus(HostSample& s);
  void add_memory(HostSample& s);
  void add_disks(HostSample& s);
  void add_networks(HostSample& s);

  SystemRoot root_;
  std::string quota_file_;
  Counters counters_;
};

class ProcessSampler {
 public:
  explicit ProcessSampler(const SystemRoot& root);
  ProcessSample sample(double now_s);

 private:
  void add_cpus(ProcessSample& s, const std::vector<int>& cpus);

  SystemRoot root_;
  Counters counters_;
  double ticks_per_s_;
};

// Path of the cgroup's file that the kernel's controller keeps, for version 2 and 1: first that exists, "" for none.
// `v2` such as "cpu.max", `v1` such as "cpu/cpu.cfs_quota_us".
std::string cgroup_file(const SystemRoot& root, const std::string& v2, const std::string& v1);

}  // namespace drivetrain
