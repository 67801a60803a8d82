// Host, process and start-up facts from made-up files of /proc and /sys.
#include <gtest/gtest.h>

#include "runtime/monitor/host_facts.h"
#include "runtime/monitor/host_sampler.h"
#include "runtime/monitor/neighbours.h"
#include "runtime/monitor/proc_text.h"
#include "tests/runtime/monitor/made_up_files.h"

namespace drivetrain {
namespace {

// user nice system idle iowait irq softirq steal guest guest_nice
void write_cpus(const MadeUpFiles& files, const char* all, const char* cpu0, const char* cpu1) {
  files.write("proc/stat", std::string("cpu  ") + all + "\ncpu0 " + cpu0 + "\ncpu1 " + cpu1 +
                               "\nintr 5\nprocs_running 7\nprocs_blocked 0");
}

TEST(HostSampler, TurnsCountersIntoRates) {
  const MadeUpFiles files;
  files.write("sys/block/vda/size", "1");
  files.write("sys/fs/cgroup/cpu.stat", "usage_usec 5\nthrottled_usec 1000000");
  files.write("proc/self/cgroup", "0::/not/here");
  write_cpus(files, "100 0 0 100 0 0 0 0 0 0", "50 0 0 50 0 0 0 0 0 0", "50 0 0 50 0 0 0 0 0 0");
  files.write("proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    250 kB\nSwapTotal: 40 kB\nSwapFree: 10 kB");
  files.write("proc/vmstat", "pgfault 9\npgmajfault 100");
  files.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=5000000\nfull total=1");
  files.write("proc/diskstats",
              " 254 0 vda 1 0 100 0 1 0 200 0 0 1000 0 0 0\n 254 1 vda1 1 0 100 0 1 0 200 0 0 1000 0 0 0\n"
              "   7 0 loop0 1 0 999 0 1 0 999 0 0 9999 0 0 0");
  files.write("proc/net/dev",
              "Inter-|   Receive\n face |bytes\n    lo: 900 0 0 0 0 0 0 0 900 0 0 0 0 0 0 0\n"
              "  eth0:1000 0 0 0 0 0 0 0 5000 0 0 0 0 0 0 0");
  files.write("proc/net/snmp", "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs InErrs\nTcp: 5 10 0");
  HostSampler sampler{SystemRoot(files.root())};
  const HostSample first = sampler.sample(10);
  EXPECT_FALSE(first.cpu_busy);
  EXPECT_FALSE(first.disk_read_per_s);
  EXPECT_EQ(first.runnable, 7);
  EXPECT_EQ(first.memory_total, 1024000);
  EXPECT_EQ(first.memory_available, 256000);
  EXPECT_EQ(first.swap_used, 30 * 1024);

  write_cpus(files, "160 0 10 110 10 0 0 10 0 0", "50 0 0 50 0 0 0 0 0 0", "50 0 0 50 0 0 0 0 0 0");
  files.write("proc/vmstat", "pgfault 99\npgmajfault 120");
  files.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=6000000\nfull total=9000000");
  files.write("sys/fs/cgroup/cpu.stat", "usage_usec 5\nthrottled_usec 1500000");
  files.write("proc/diskstats",
              " 254 0 vda 1 0 300 0 1 0 600 0 0 2500 0 0 0\n 254 1 vda1 1 0 300 0 1 0 600 0 0 2500 0 0 0\n"
              "   7 0 loop0 1 0 99999 0 1 0 99999 0 0 99999 0 0 0");
  files.write("proc/net/dev",
              "    lo: 90000 0 0 0 0 0 0 0 90000 0 0 0 0 0 0 0\n  eth0:3000 0 0 0 0 0 0 0 9000 0 0 0 0 0 0 0");
  files.write("proc/net/snmp", "Tcp: InSegs RetransSegs InErrs\nTcp: 5 16 0");
  const HostSample s = sampler.sample(12);
  EXPECT_EQ(s.cpu_busy, 70);
  EXPECT_EQ(s.cpu_iowait, 10);
  EXPECT_EQ(s.cpu_steal, 10);
  EXPECT_EQ(s.major_faults_per_s, 10);
  EXPECT_EQ(s.pressure_cpu, 50);
  EXPECT_FALSE(s.pressure_io);
  EXPECT_EQ(s.quota_throttled, 25);
  EXPECT_EQ(s.disk_read_per_s, 100 * 512);  // the partition is inside the disk, a loop device elsewhere
  EXPECT_EQ(s.disk_written_per_s, 200 * 512);
  EXPECT_EQ(s.disk_busy, 75);
  EXPECT_EQ(s.net_received_per_s, 1000);
  EXPECT_EQ(s.net_sent_per_s, 2000);
  EXPECT_EQ(s.tcp_retransmits_per_s, 3);
}

TEST(HostSampler, ACounterThatWentBackGivesNoRate) {
  const MadeUpFiles files;
  files.write("proc/vmstat", "pgmajfault 100");
  HostSampler sampler{SystemRoot(files.root())};
  sampler.sample(1);
  files.write("proc/vmstat", "pgmajfault 3");
  EXPECT_FALSE(sampler.sample(2).major_faults_per_s);
  files.write("proc/vmstat", "pgmajfault 5");
  EXPECT_EQ(sampler.sample(3).major_faults_per_s, 2);
}

void write_process(const MadeUpFiles& files, int ticks, int minor, int preempted) {
  // pid (name) state ppid pgrp session tty tpgid flags minflt cminflt majflt cmajflt utime stime ...
  files.write("proc/self/stat", "5 (drive) (train) S 1 1 1 0 -1 0 " + std::to_string(minor) + " 0 4 0 " +
                                    std::to_string(ticks) + " 0 0 0 20 0 3 0");
  files.write("proc/self/status",
              "Name:\tx\nVmRSS:\t  8 kB\nVmSwap:\t  1 kB\nThreads:\t12\nCpus_allowed:\t3\n"
              "Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t1\n"
              "nonvoluntary_ctxt_switches:\t" +
                  std::to_string(preempted));
}

TEST(ProcessSampler, KnowsThreadsAffinityAndShare) {
  const MadeUpFiles files;
  write_process(files, 0, 10, 5);
  files.write("proc/self/io", "rchar: 9\nread_bytes: 1000\nwrite_bytes: 2000");
  write_cpus(files, "9 9 9 9 9 9 9 9 9 9", "0 0 0 0 0 0 0 0 0 0", "0 0 0 0 0 0 0 0 0 0");
  files.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000");
  files.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3000000");
  ProcessSampler sampler{SystemRoot(files.root())};
  const ProcessSample first = sampler.sample(0);
  EXPECT_EQ(first.threads, 12);
  EXPECT_EQ(first.affinity_cpus, 2);
  EXPECT_EQ(first.resident, 8192);
  EXPECT_EQ(first.swapped, 1024);
  EXPECT_EQ(first.cpu_mhz, 2000);
  EXPECT_EQ(first.cpu_mhz_min, 1000);
  EXPECT_FALSE(first.cpu_cores);
  write_process(files, static_cast<int>(3 * sysconf(_SC_CLK_TCK)), 40, 25);
  files.write("proc/self/io", "rchar: 9\nread_bytes: 5000\nwrite_bytes: 2000");
  write_cpus(files, "9 9 9 9 9 9 9 9 9 9", "80 0 0 0 0 0 0 20 0 0", "20 0 0 80 0 0 0 0 0 0");
  const ProcessSample s = sampler.sample(2);
  EXPECT_EQ(s.cpu_cores, 1.5);
  EXPECT_EQ(s.minor_faults_per_s, 15);
  EXPECT_EQ(s.major_faults_per_s, 0);
  EXPECT_EQ(s.preempted_per_s, 10);
  EXPECT_EQ(s.own_cpus_busy, 50);
  EXPECT_EQ(s.own_cpus_steal, 10);
  EXPECT_EQ(s.read_per_s, 2000);
  EXPECT_EQ(s.written_per_s, 0);
}

TEST(Samplers, SayNothingWhereNothingCanBeRead) {
  const MadeUpFiles files;
  HostSampler host{SystemRoot(files.root())};
  ProcessSampler process{SystemRoot(files.root())};
  for (const double now : {1.0, 2.0}) {
    const HostSample h = host.sample(now);
    for (const auto& field : host_fields()) EXPECT_FALSE(h.*field.value) << field.key;
    const ProcessSample p = process.sample(now);
    for (const auto& field : process_fields()) EXPECT_FALSE(p.*field.value) << field.key;
  }
}

void write_neighbour(const MadeUpFiles& files, const std::string& pid, const char* name, int parent, int ticks,
                     int start = 7) {
  std::string text = "1 (" + std::string(name) + ") R " + std::to_string(parent) + " 0 0 0 0 0 0 0 0 0 " +
                     std::to_string(ticks) + " 0 0 0 20 0 1 0 " + std::to_string(start);
  for (int field = 23; field < 39; ++field) text += " 0";
  files.write("proc/" + pid + "/stat", text + " 1 0");
}

TEST(Neighbours, AreTheBusyProcessesOutsideTheJob) {
  const MadeUpFiles files;
  const auto write_all = [&](int seconds) {
    const int second = static_cast<int>(sysconf(_SC_CLK_TCK));
    write_neighbour(files, "self", "drivetrain", 50, 9 * seconds * second);
    write_neighbour(files, "51", "drivetrain", 50, 9 * seconds * second);
    write_neighbour(files, "52", "drivetrain", 50, 9 * seconds * second);  // another rank
    write_neighbour(files, "60", "hog (1) x", 50, seconds * second / 2);
    write_neighbour(files, "61", "reborn", 1, seconds * second, seconds);  // the number was given again
    write_neighbour(files, "62", "idle", 1, seconds * second / 20);
    for (const char* pid : {"70", "71", "72"}) write_neighbour(files, pid, "more", 1, seconds * second);
  };
  files.write("proc/63/stat", "torn");
  write_all(2);
  NeighbourScan scan{SystemRoot(files.root())};
  EXPECT_TRUE(scan.scan(100).empty());
  write_all(6);
  std::vector<Neighbour> busy = scan.scan(104);
  ASSERT_EQ(busy.size(), 3u);
  for (const Neighbour& one : busy) EXPECT_EQ(one.name, "more");
  for (const char* pid : {"70", "71", "72"}) std::filesystem::remove_all(files.root() / "proc" / pid);
  write_neighbour(files, "60", "hog (1) x", 50, 7 * static_cast<int>(sysconf(_SC_CLK_TCK)));
  busy = scan.scan(108);
  ASSERT_EQ(busy.size(), 1u);
  EXPECT_EQ(busy[0].pid, 60);
  EXPECT_EQ(busy[0].name, "hog (1) x");
  EXPECT_EQ(busy[0].cpu_cores, 1);
  EXPECT_EQ(busy[0].cpu, 1);
}

// Configuration space with one extended capability behind another one.
std::string config_space(unsigned acs_control) {
  std::string bytes(4096, '\0');
  const auto put = [&](std::size_t at, unsigned id, std::size_t next) {
    bytes[at] = static_cast<char>(id);
    bytes[at + 2] = static_cast<char>(1 | (next & 0xf) << 4);
    bytes[at + 3] = static_cast<char>(next >> 4);
  };
  put(0x100, 0x01, 0x148);
  put(0x148, 0x0d, 0);
  bytes[0x148 + 6] = static_cast<char>(acs_control);
  return bytes;
}

TEST(HostFacts, AreThoseOfTheIncidentRules) {
  const MadeUpFiles files;
  files.write("sys/devices/system/cpu/online", "0-7");
  files.write("sys/devices/system/cpu/cpu4/cpufreq/scaling_governor", "powersave");
  files.write("sys/devices/system/node/online", "0-1");
  files.write("sys/devices/system/node/node0/cpulist", "0-3");
  files.write("sys/devices/system/node/node1/cpulist", "4-7");
  files.write("proc/self/status", "Threads:\t2\nCpus_allowed_list:\t4-5,7");
  files.write("proc/cmdline", "quiet intel_iommu=on iommu=pt isolcpus=2 splash");
  files.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU @ 2.10GHz\nmodel name\t: another");
  files.write("proc/sys/kernel/osrelease", "6.1.0");
  files.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
  files.write("proc/self/cgroup", "0::/job");
  files.write("sys/fs/cgroup/job/cpu.max", "150000 100000");
  files.write("sys/fs/cgroup/job/memory.max", "1048576");
  const auto bridge = [&](const std::string& address, unsigned control) {
    files.write("sys/bus/pci/devices/" + address + "/class", "0x060400");
    files.write("sys/bus/pci/devices/" + address + "/config", config_space(control));
  };
  bridge("0000:00:01.0", 0x1d);
  bridge("0000:00:02.0", 0x01);  // source validation alone redirects nothing
  const char* environment[] = {"NCCL_P2P_DISABLE=1", "HOME=/root",  "OMPI_MCA_hwloc_base_binding_policy=core",
                               "OMP_NUM_THREADS=4",  "NCCL_EMPTY=", nullptr};
  const HostFacts f = gather_host_facts(SystemRoot(files.root()), {3, 1, 2, 8}, environment);
  EXPECT_FALSE(f.host.empty());
  EXPECT_EQ(f.world_rank, 3);
  EXPECT_EQ(f.local_rank, 1);
  EXPECT_EQ(f.local_size, 2);
  EXPECT_EQ(f.compute_threads, 8);
  EXPECT_EQ(f.online_cpus, 8);
  EXPECT_EQ(f.affinity, "4-5,7");
  EXPECT_EQ(f.affinity_cpus, 3);
  EXPECT_EQ(f.affinity_nodes, std::vector<int>{1});
  EXPECT_EQ(f.numa_nodes, 2);
  EXPECT_EQ(f.governor, "powersave");
  EXPECT_EQ(f.cpu_model, "A CPU @ 2.10GHz");
  EXPECT_EQ(f.kernel, "6.1.0");
  EXPECT_EQ(f.thp, "madvise");
  EXPECT_EQ(f.kernel_flags, (std::vector<std::string>{"intel_iommu=on", "iommu=pt", "isolcpus=2"}));
  EXPECT_EQ(f.cpu_limit, 1.5);
  EXPECT_EQ(f.memory_limit, 1048576);
  EXPECT_FALSE(f.shm_size);
  EXPECT_EQ(f.acs_redirects, std::vector<std::string>{"0000:00:01.0"});
  EXPECT_EQ(f.environment, (std::map<std::string, std::string>{{"NCCL_P2P_DISABLE", "1"},
                                                               {"OMPI_MCA_hwloc_base_binding_policy", "core"},
                                                               {"OMP_NUM_THREADS", "4"},
                                                               {"NCCL_EMPTY", ""}}));
}

TEST(HostFacts, OldCgroupsAndNoLimits) {
  const MadeUpFiles files;
  files.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  files.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  files.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  HostFacts f = gather_host_facts(SystemRoot(files.root()), {}, nullptr);
  EXPECT_FALSE(f.cpu_limit);
  EXPECT_FALSE(f.memory_limit);
  files.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000");
  EXPECT_EQ(gather_host_facts(SystemRoot(files.root()), {}, nullptr).cpu_limit, 2);
  files.write("sys/fs/cgroup/cpu.max", "max 100000");
  files.write("sys/fs/cgroup/memory.max", "max");
  f = gather_host_facts(SystemRoot(files.root()), {}, nullptr);
  EXPECT_FALSE(f.cpu_limit);
  EXPECT_FALSE(f.memory_limit);
}

TEST(CpuList, ReadsRanges) {
  EXPECT_EQ(cpu_list("0-2,8"), (std::vector<int>{0, 1, 2, 8}));
  EXPECT_EQ(cpu_list("3"), std::vector<int>{3});
  for (const char* bad : {"", "a", "3-1", "1-", "-1", "0-99999999"}) EXPECT_TRUE(cpu_list(bad).empty()) << bad;
}

}  // namespace
}  // namespace drivetrain
