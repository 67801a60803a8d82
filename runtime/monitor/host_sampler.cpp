#include "runtime/monitor/host_sampler.h"

#include <unistd.h>

#include <algorithm>

#include "runtime/monitor/proc_text.h"

namespace drivetrain {
namespace {

Reading sum(Reading a, Reading b) {
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

void add_to(Reading& total, Reading part) {
  if (part) total = total.value_or(0) + *part;
}

// Ticks of one line of /proc/stat. Guest time is inside user time already.
struct CpuTicks {
  Reading all, busy, iowait, steal;
};
CpuTicks cpu_ticks(std::string_view stat, std::string_view cpu) {
  const auto words = words_of(proc_line(stat, cpu));  // user nice system idle iowait irq softirq steal ...
  double all = 0;
  for (std::size_t n = 0; n < 8; ++n) {
    const Reading ticks = proc_word(words, n);
    if (!ticks) return {};
    all += *ticks;
  }
  const double idle = *proc_word(words, 3), iowait = *proc_word(words, 4), steal = *proc_word(words, 7);
  return {all, all - idle - iowait - steal, iowait, steal};
}

bool is_whole_disk(const SystemRoot& root, std::string_view name) {
  // Partitions have no entry of their own in /sys/block; loop and ram disks count what the disk below counts again.
  return !name.starts_with("loop") && !name.starts_with("ram") && !name.starts_with("dm-") &&
         std::filesystem::exists(root / ("sys/block/" + std::string(name)));
}

}  // namespace

HostSampler::HostSampler(const SystemRoot& root)
    : root_(root), quota_file_(cgroup_file(root, "cpu.stat", "cpu/cpu.stat")) {}

HostSample HostSampler::sample(double now_s) {
  counters_.begin(now_s);
  HostSample s;
  add_cpus(s);
  add_memory(s);
  add_disks(s);
  add_networks(s);
  return s;
}

void HostSampler::add_cpus(HostSample& s) {
  const std::string stat = root_.text("proc/stat").value_or("");
  const CpuTicks ticks = cpu_ticks(stat, "cpu");
  const Reading all = counters_.growth("cpu", ticks.all);
  s.cpu_busy = percent(counters_.growth("busy", ticks.busy), all);
  s.cpu_iowait = percent(counters_.growth("iowait", ticks.iowait), all);
  s.cpu_steal = percent(counters_.growth("steal", ticks.steal), all);
  s.runnable = proc_value(stat, "procs_running");

  const auto pressure = [&](const char* what) {  // total: microseconds in which some task waited
    const std::string text = root_.text(std::string("proc/pressure/") + what).value_or("");
    Reading total;
    for (const std::string_view word : words_of(proc_line(text, "some")))
      if (word.starts_with("total=")) total = proc_word({word.substr(6)}, 0);
    const Reading rate = counters_.per_second(std::string("pressure ") + what, total);
    return rate ? Reading(*rate * 1e-4) : Reading();
  };
  s.pressure_cpu = pressure("cpu");
  s.pressure_io = pressure("io");
  s.pressure_memory = pressure("memory");

  const std::string text = quota_file_.empty() ? "" : root_.text(quota_file_).value_or("");
  Reading throttled_us = proc_value(text, "throttled_usec");
  if (const Reading ns = proc_value(text, "throttled_time")) throttled_us = *ns * 1e-3;  // version 1
  if (const Reading rate = counters_.per_second("throttled", throttled_us)) s.quota_throttled = *rate * 1e-4;
}

void HostSampler::add_memory(HostSample& s) {
  const std::string memory = root_.text("proc/meminfo").value_or("");
  s.memory_total = proc_value(memory, "MemTotal");
  s.memory_available = proc_value(memory, "MemAvailable");
  const Reading swap = proc_value(memory, "SwapTotal"), free_swap = proc_value(memory, "SwapFree");
  if (swap && free_swap) s.swap_used = *swap - *free_swap;
  s.major_faults_per_s =
      counters_.per_second("faults", proc_value(root_.text("proc/vmstat").value_or(""), "pgmajfault"));
}

void HostSampler::add_disks(HostSample& s) {
  constexpr double kSector = 512;  // of /proc/diskstats, whatever the disk's own is
  Reading read, written;
  const std::string table = root_.text("proc/diskstats").value_or("");
  for (const std::string_view line : lines_of(table)) {
    const auto words = words_of(line);
    if (words.size() < 14 || !is_whole_disk(root_, words[2])) continue;
    const std::string name(words[2]);
    add_to(read, proc_word(words, 5));
    add_to(written, proc_word(words, 9));
    const Reading busy_ms = counters_.per_second("busy " + name, proc_word(words, 12));
    if (busy_ms) s.disk_busy = std::max(s.disk_busy.value_or(0), *busy_ms * 0.1);
  }
  if (const Reading sectors = counters_.per_second("read", read)) s.disk_read_per_s = *sectors * kSector;
  if (const Reading sectors = counters_.per_second("written", written)) s.disk_written_per_s = *sectors * kSector;
}

void HostSampler::add_networks(HostSample& s) {
  Reading received, sent;
  const std::string table = root_.text("proc/net/dev").value_or("");
  for (const std::string_view line : lines_of(table)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const auto name = words_of(line.substr(0, colon)), numbers = words_of(line.substr(colon + 1));
    if (name.size() != 1 || name[0] == "lo") continue;
    add_to(received, proc_word(numbers, 0));
    add_to(sent, proc_word(numbers, 8));
  }
  s.net_received_per_s = counters_.per_second("received", received);
  s.net_sent_per_s = counters_.per_second("sent", sent);

  // Two lines "Tcp:", names and then values in the same order.
  const std::string snmp = root_.text("proc/net/snmp").value_or("");
  std::vector<std::string_view> names;
  for (const std::string_view line : lines_of(snmp)) {
    if (!line.starts_with("Tcp:")) continue;
    const auto words = words_of(line);
    const auto at = std::find(names.begin(), names.end(), "RetransSegs");
    if (at != names.end()) {
      const Reading segments = proc_word(words, static_cast<std::size_t>(at - names.begin()));
      s.tcp_retransmits_per_s = counters_.per_second("retransmits", segments);
    }
    names = words;
  }
}

ProcessSampler::ProcessSampler(const SystemRoot& root)
    : root_(root), ticks_per_s_(static_cast<double>(sysconf(_SC_CLK_TCK))) {}

ProcessSample ProcessSampler::sample(double now_s) {
  counters_.begin(now_s);
  ProcessSample s;
  // Behind the name of the program, which may hold spaces: state is field 3.
  const std::string stat = root_.text("proc/self/stat").value_or("");
  const std::size_t name_end = stat.rfind(')');
  const auto fields = words_of(name_end == std::string::npos ? "" : std::string_view(stat).substr(name_end + 1));
  const auto field = [&](std::size_t n) { return proc_word(fields, n - 3); };
  if (const Reading ticks = counters_.per_second("cpu", sum(field(14), field(15))))
    s.cpu_cores = *ticks / ticks_per_s_;
  s.minor_faults_per_s = counters_.per_second("minor", field(10));
  s.major_faults_per_s = counters_.per_second("major", field(12));

  const std::string status = root_.text("proc/self/status").value_or("");
  s.threads = proc_value(status, "Threads");
  s.resident = proc_value(status, "VmRSS");
  s.swapped = proc_value(status, "VmSwap");
  s.preempted_per_s = counters_.per_second("preempted", proc_value(status, "nonvoluntary_ctxt_switches"));
  const auto allowed = words_of(proc_line(status, "Cpus_allowed_list"));
  const std::vector<int> cpus = allowed.empty() ? std::vector<int>() : cpu_list(allowed[0]);
  if (!cpus.empty()) s.affinity_cpus = static_cast<double>(cpus.size());
  add_cpus(s, cpus);

  const std::string io = root_.text("proc/self/io").value_or("");
  s.read_per_s = counters_.per_second("read", proc_value(io, "read_bytes"));
  s.written_per_s = counters_.per_second("written", proc_value(io, "write_bytes"));
  return s;
}

void ProcessSampler::add_cpus(ProcessSample& s, const std::vector<int>& cpus) {
  const std::string stat = root_.text("proc/stat").value_or("");
  Reading all, busy, steal;
  for (const int cpu : cpus) {
    const CpuTicks ticks = cpu_ticks(stat, "cpu" + std::to_string(cpu));
    add_to(all, ticks.all);
    add_to(busy, ticks.busy);
    add_to(steal, ticks.steal);
  }
  const Reading grown = counters_.growth("own all", all);
  s.own_cpus_busy = percent(counters_.growth("own busy", busy), grown);
  s.own_cpus_steal = percent(counters_.growth("own steal", steal), grown);

  // Each file is a question to the cpu itself: of many cpus, some evenly spread ones stand for all.
  constexpr std::size_t kMostAsked = 16;
  const std::size_t stride = (cpus.size() + kMostAsked - 1) / kMostAsked;
  Reading total;
  double asked = 0;
  for (std::size_t i = 0; i < cpus.size(); i += stride) {
    const auto khz =
        root_.integer("sys/devices/system/cpu/cpu" + std::to_string(cpus[i]) + "/cpufreq/scaling_cur_freq");
    if (!khz) continue;
    const double mhz = static_cast<double>(*khz) * 1e-3;
    add_to(total, mhz);
    s.cpu_mhz_min = std::min(s.cpu_mhz_min.value_or(mhz), mhz);
    ++asked;
  }
  if (total) s.cpu_mhz = *total / asked;
}

std::string cgroup_file(const SystemRoot& root, const std::string& v2, const std::string& v1) {
  const std::string groups = root.text("proc/self/cgroup").value_or("");
  std::string own;  // of version 2: the line "0::/path"
  for (const std::string_view line : lines_of(groups))
    if (line.starts_with("0::/")) own = std::string(line.substr(4));
  // Inside a container the path may be that of the host, and the container's own group lies at the root.
  const std::string base = "sys/fs/cgroup/";
  for (const std::string& path : {base + (own.empty() ? "" : own + "/") + v2, base + v2, base + v1})
    if (std::filesystem::exists(root / path)) return path;
  return "";
}

}  // namespace drivetrain
