#include "launcher/cpu_share.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "kernels/error.h"

namespace drivetrain {
namespace {

int topology_value(int cpu, const char* name, int otherwise) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" + name);
  int value = otherwise;
  if (file >> value) return value;
  return otherwise;
}

// The cpus of every core, cores in order.
std::map<int, std::vector<int>> by_core(const std::vector<CpuPlace>& places) {
  std::map<int, std::vector<int>> cores;
  for (const CpuPlace& place : places) cores[place.core].push_back(place.cpu);
  return cores;
}

}  // namespace

std::vector<CpuPlace> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
    throw Error(ErrorKind::kPreflight, std::string("cannot read the processor mask: ") + std::strerror(errno));
  }
  std::map<std::pair<int, int>, std::vector<int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    cores[{topology_value(cpu, "physical_package_id", 0), topology_value(cpu, "core_id", cpu)}].push_back(cpu);
  }
  std::vector<CpuPlace> places;
  int core = 0;
  for (const auto& [where, cpus] : cores) {
    for (const int cpu : cpus) places.push_back({cpu, core});
    ++core;
  }
  return places;
}

int count_cores(const std::vector<CpuPlace>& places) {
  return static_cast<int>(by_core(places).size());
}

CpuShare share_of(const std::vector<CpuPlace>& places, int local_rank, int local_size) {
  const auto cores = by_core(places);
  const long count = static_cast<long>(cores.size());
  const bool enough = local_size <= count;
  const long first = enough ? count * local_rank / local_size : 0;
  const long last = enough ? count * (local_rank + 1) / local_size : count;
  CpuShare share;
  long at = 0;
  for (const auto& [core, cpus] : cores) {
    if (at >= first && at < last) share.cpus.insert(share.cpus.end(), cpus.begin(), cpus.end());
    ++at;
  }
  share.threads = enough ? static_cast<int>(last - first) : 1;
  return share;
}

}  // namespace drivetrain
