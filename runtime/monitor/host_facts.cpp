#include "runtime/monitor/host_facts.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <array>

#include "runtime/log.h"
#include "runtime/monitor/host_sampler.h"
#include "runtime/monitor/proc_text.h"

namespace drivetrain {
namespace {

constexpr std::array<std::string_view, 10> kEnvironment{"NCCL_", "OMPI_MCA_", "OMP_", "CUDA_", "GOMP_",
                                                        "UCX_",  "PMIX_MCA_", "MKL_", "DNNL_", "MALLOC_"};
constexpr std::array<std::string_view, 8> kKernelFlags{"iommu",     "intel_iommu", "amd_iommu", "isolcpus",
                                                       "nohz_full", "mitigations", "pcie_aspm", "pci"};

// "[always] madvise never" -> "always".
std::string chosen(const std::string& text) {
  const std::size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

std::string behind_colon(const std::string& text, std::string_view key) {
  std::string_view line = proc_line(text, key);
  const std::size_t begin = line.find_first_not_of(": \t");
  return begin == std::string_view::npos ? "" : std::string(line.substr(begin));
}

Reading cpu_limit(const SystemRoot& root) {
  const std::string v2 = cgroup_file(root, "cpu.max", "");
  const auto words_text = v2.empty() ? std::nullopt : root.text(v2);
  if (words_text) {  // "400000 100000" or "max 100000"
    const auto words = words_of(*words_text);
    const Reading quota = proc_word(words, 0), period = proc_word(words, 1);
    return quota && period && *period > 0 ? Reading(*quota / *period) : Reading();
  }
  const auto quota = root.integer("sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  const auto period = root.integer("sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;  // -1: no limit
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

Reading memory_limit(const SystemRoot& root) {
  const std::string file = cgroup_file(root, "memory.max", "memory/memory.limit_in_bytes");
  const auto bytes = file.empty() ? std::nullopt : root.integer(file);  // "max" is no number
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;              // version 1 says a huge number instead
  if (!bytes || *bytes >= kNoLimit) return std::nullopt;
  return static_cast<double>(*bytes);
}

// Whether a bridge's Access Control Services redirect requests or completions upstream, which breaks or slows
// peer-to-peer copies (NCCL user guide, "PCI Access Control Services"). Offsets: PCI Express Base Specification,
// extended capability 0x0d, control register at +6. Only root may read configuration space beyond 64 bytes.
bool redirects(const std::string& config) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(config[at])); };
  constexpr unsigned kAcs = 0x0d, kRequestRedirect = 0x04, kCompletionRedirect = 0x08;
  std::size_t at = 0x100;
  for (int hops = 0; hops < 64 && at >= 0x100 && at + 8 <= config.size(); ++hops) {
    const unsigned id = byte(at) | byte(at + 1) << 8;
    if (id == kAcs) return (byte(at + 6) & (kRequestRedirect | kCompletionRedirect)) != 0;
    at = (byte(at + 2) >> 4 | byte(at + 3) << 4) & ~std::size_t{3};
  }
  return false;
}

std::vector<std::string> acs_redirects(const SystemRoot& root) {
  std::vector<std::string> bridges;
  for (const std::string& address : root.entries("sys/bus/pci/devices")) {
    const std::string device = "sys/bus/pci/devices/" + address;
    if (!root.text(device + "/class").value_or("").starts_with("0x0604")) continue;  // PCI-to-PCI bridge
    if (redirects(root.bytes(device + "/config").value_or(""))) bridges.push_back(address);
  }
  return bridges;
}

void add_cpus(const SystemRoot& root, HostFacts& facts) {
  facts.online_cpus = static_cast<int>(cpu_list(root.text("sys/devices/system/cpu/online").value_or("")).size());
  const std::string status = root.text("proc/self/status").value_or("");
  facts.affinity = behind_colon(status, "Cpus_allowed_list");
  const std::vector<int> cpus = cpu_list(facts.affinity);
  facts.affinity_cpus = static_cast<int>(cpus.size());
  const std::string system = "sys/devices/system/";
  if (!cpus.empty())
    facts.governor =
        root.text(system + "cpu/cpu" + std::to_string(cpus[0]) + "/cpufreq/scaling_governor").value_or("");
  const std::vector<int> nodes = cpu_list(root.text(system + "node/online").value_or(""));
  facts.numa_nodes = static_cast<int>(nodes.size());
  for (const int node : nodes) {
    const auto own = cpu_list(root.text(system + "node/node" + std::to_string(node) + "/cpulist").value_or(""));
    const bool shared = std::any_of(own.begin(), own.end(),
                                    [&](int cpu) { return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end(); });
    if (shared) facts.affinity_nodes.push_back(node);
  }
}

}  // namespace

HostFacts gather_host_facts(const SystemRoot& root, const RankPlace& place, const char* const* environment) {
  HostFacts facts;
  facts.host = short_host_name();
  facts.world_rank = place.world_rank;
  facts.local_rank = place.local_rank;
  facts.local_size = place.local_size;
  facts.compute_threads = place.compute_threads;
  add_cpus(root, facts);
  facts.cpu_model = behind_colon(root.text("proc/cpuinfo").value_or(""), "model name");
  facts.kernel = root.text("proc/sys/kernel/osrelease").value_or("");
  facts.thp = chosen(root.text("sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  const std::string flags = root.text("proc/cmdline").value_or("");
  for (const std::string_view flag : words_of(flags)) {
    const std::string_view key = flag.substr(0, flag.find('='));
    if (std::find(kKernelFlags.begin(), kKernelFlags.end(), key) != kKernelFlags.end())
      facts.kernel_flags.emplace_back(flag);
  }
  facts.cpu_limit = cpu_limit(root);
  facts.memory_limit = memory_limit(root);
  struct statvfs shm {};
  if (statvfs((root / "dev/shm").c_str(), &shm) == 0) {
    facts.shm_size = static_cast<double>(shm.f_blocks) * static_cast<double>(shm.f_frsize);
    facts.shm_free = static_cast<double>(shm.f_bavail) * static_cast<double>(shm.f_frsize);
  }
  facts.acs_redirects = acs_redirects(root);
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    const bool matters = std::any_of(kEnvironment.begin(), kEnvironment.end(),
                                     [&](std::string_view prefix) { return entry.starts_with(prefix); });
    const std::size_t equals = entry.find('=');
    if (matters && equals != std::string_view::npos)
      facts.environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return facts;
}

}  // namespace drivetrain
