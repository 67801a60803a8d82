#include "launcher/report/run_machine.h"

#include <algorithm>
#include <cstdio>

#include "kernels/error.h"
#include "runtime/diagnosis/device_rules.h"
#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"
#include "runtime/monitor/monitor_file.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

struct RankLog {
  int rank = 0;
  MonitorLog log;
};

// The median of the samples that have the value.
template <class Get>
Reading typical(const std::vector<MonitorSample>& samples, const Get& get) {
  std::vector<double> values;
  for (const MonitorSample& sample : samples)
    if (const Reading value = get(sample)) values.push_back(*value);
  return values.empty() ? std::nullopt : Reading(median(std::move(values)));
}

std::vector<RankLog> read_logs(const fs::path& run_folder, int world_size, std::vector<std::string>& remarks) {
  std::vector<RankLog> logs;
  for (int r = 0; r < world_size; ++r) {
    char name[32];
    std::snprintf(name, sizeof name, "monitor-%05d.jsonl", r);
    if (!fs::exists(run_folder / name)) continue;
    try {
      logs.push_back({r, read_monitor(run_folder / name)});
    } catch (const Error& error) {
      remarks.push_back(std::string("not used: ") + error.what());
    }
  }
  return logs;
}

DeviceFacts device_of(const std::vector<MonitorSample>& samples, std::size_t place) {
  const auto of = [&](Reading DeviceSample::*field, double scale = 1) {
    const Reading value = typical(samples, [&](const MonitorSample& s) {
      return place < s.devices.size() ? s.devices[place].*field : std::nullopt;
    });
    return value ? Reading(*value * scale) : std::nullopt;
  };
  DeviceFacts facts;
  facts.utilisation = of(&DeviceSample::utilization, 0.01);
  facts.memory_utilisation = of(&DeviceSample::memory_utilization, 0.01);
  facts.power_w = of(&DeviceSample::power_w);
  facts.power_limit_w = of(&DeviceSample::power_limit_w);
  facts.temperature_c = of(&DeviceSample::temperature_c);
  facts.clock_mhz = of(&DeviceSample::sm_mhz);
  facts.max_clock_mhz = of(&DeviceSample::sm_max_mhz);
  for (const MonitorSample& sample : samples)
    if (place < sample.devices.size()) {
      facts.name = sample.devices[place].name;
      if (const Reading bits = sample.devices[place].throttle)
        facts.throttle = throttle_text(static_cast<std::uint64_t>(*bits));
    }
  return facts;
}

// Devices are sampled by the first rank of a host, in the order of its ranks.
void add_devices(const std::vector<RankLog>& logs, int world_size, RunMachine& machine) {
  std::vector<DeviceFacts> devices(static_cast<std::size_t>(world_size));
  bool any = false;
  for (const RankLog& one : logs) {
    if (one.log.samples.empty() || one.log.samples.back().devices.empty() || one.log.facts.empty()) continue;
    const int local_size = one.log.facts.back().local_size;
    for (int local = 0; local < local_size && one.rank + local < world_size; ++local) {
      devices[static_cast<std::size_t>(one.rank + local)] =
          device_of(one.log.samples, static_cast<std::size_t>(local));
      any = true;
      std::vector<double> power;
      for (const MonitorSample& sample : one.log.samples)
        if (static_cast<std::size_t>(local) < sample.devices.size())
          if (const Reading watts = sample.devices[static_cast<std::size_t>(local)].power_w) power.push_back(*watts);
      const DeviceFinding drop = power_drop(power, one.rank + local);
      if (!drop.sentence.empty()) machine.device_remarks.push_back(drop.sentence + ": " + drop.action);
    }
  }
  if (!any) return;
  machine.devices = std::move(devices);
  for (int r = 0; r < world_size; ++r)
    for (const DeviceFinding& finding : device_findings(machine.devices, r))
      machine.device_remarks.push_back(finding.sentence + (finding.action.empty() ? "" : ": " + finding.action));
}

// Shares of the time, in percent, above which a host is said to be short of something.
struct HostRule {
  Reading HostSample::*field;
  double above;
  const char* what;
};
constexpr HostRule kHostRules[] = {
    {&HostSample::cpu_steal, 5, "% of its cpus' time is taken by other machines on the same hardware (steal)"},
    {&HostSample::quota_throttled, 1, "% of the time the container is stopped by its cpu limit: raise the limit"},
    {&HostSample::pressure_memory, 5, "% of the time somebody waits for memory: it is swapping or reclaiming"},
    {&HostSample::pressure_io, 20, "% of the time somebody waits for a disk"},
    {&HostSample::tcp_retransmits_per_s, 100, "TCP segments a second are sent again: the network loses packets"}};

void add_hosts(const std::vector<RankLog>& logs, RunMachine& machine) {
  for (const RankLog& one : logs) {
    if (one.log.facts.empty()) continue;
    const HostFacts& facts = one.log.facts.back();
    for (const HostRule& rule : kHostRules) {
      const Reading value = typical(
          one.log.samples, [&](const MonitorSample& s) { return s.host ? (*s.host).*rule.field : std::nullopt; });
      if (value && *value > rule.above)
        machine.device_remarks.push_back("host " + facts.host + ": " + fixed(*value, 1) + " " + rule.what);
    }
    RankFacts rank{.rank = one.rank, .host = facts.host};
    if (facts.affinity_cpus > 0) rank.affinity_cpus = facts.affinity_cpus;
    if (facts.compute_threads > 0) rank.threads = facts.compute_threads;
    rank.cpu_numa_nodes = facts.affinity_nodes;
    machine.facts.ranks.push_back(std::move(rank));
    machine.facts.numa_nodes = std::max(machine.facts.numa_nodes, facts.numa_nodes);
    machine.facts.ranks_per_host = std::max(machine.facts.ranks_per_host, facts.local_size);
    machine.facts.acs_bridges = std::max(machine.facts.acs_bridges, static_cast<int>(facts.acs_redirects.size()));
    if (facts.shm_free)
      machine.facts.shm_free_bytes = std::min(machine.facts.shm_free_bytes.value_or(1e300), *facts.shm_free);
    const auto p2p = facts.environment.find("NCCL_P2P_DISABLE");
    if (p2p != facts.environment.end() && p2p->second == "1") machine.facts.p2p_disabled_by_env = true;
  }
}

void add_links(const std::vector<RankLog>& logs, RunMachine& machine) {
  for (const RankLog& one : logs) {
    const auto& links = one.log.links;
    if (links.empty()) continue;
    // PCIe generations count under load only.
    const auto loaded = std::find_if(links.rbegin(), links.rend(), [](const LinkSample& s) { return s.under_load; });
    const LinkSample& newest = loaded == links.rend() ? links.back() : *loaded;
    for (const std::string& fault : link_faults(newest.report, links.front().report, newest.under_load))
      machine.link_remarks.push_back((one.log.facts.empty() ? "" : "host " + one.log.facts.back().host + ": ") +
                                     fault);
    if (machine.pairs.empty()) machine.pairs = newest.report.pairs;
  }
}

}  // namespace

RunMachine read_machine(const fs::path& run_folder, int world_size) {
  RunMachine machine;
  const std::vector<RankLog> logs = read_logs(run_folder, world_size, machine.device_remarks);
  add_devices(logs, world_size, machine);
  add_hosts(logs, machine);
  add_links(logs, machine);
  return machine;
}

}  // namespace drivetrain
