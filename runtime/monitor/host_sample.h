// The state of this host and of this rank's process at one moment. Rates are means since the sample before, and absent in
// the first. Absent too: whatever this kernel or container does not show.
#pragma once
#include <span>

#include "runtime/monitor/reading.h"

namespace drivetrain {

struct HostSample {
  Reading cpu_busy, cpu_steal, cpu_iowait;                 // percent of all cpus
  Reading runnable;                                        // threads that run or wait for a cpu
  Reading memory_total, memory_available, swap_used;       // bytes
  Reading major_faults_per_s;                              // pages read back from disk, whole host
  Reading pressure_cpu, pressure_io, pressure_memory;      // percent of time somebody waited for it (PSI some)
  Reading disk_read_per_s, disk_written_per_s, disk_busy;  // bytes, bytes, percent of the busiest disk
  Reading net_received_per_s, net_sent_per_s;              // bytes, all interfaces but loopback
  Reading tcp_retransmits_per_s;                           // segments
  Reading quota_throttled;  // percent of the time the container was stopped by its limit
};
std::span<const ReadingField<HostSample>> host_fields();

struct ProcessSample {
  Reading cpu_cores;                      // processor time per time: 1.0 is one core
  Reading threads, affinity_cpus;         // threads of the process; cpus it may run on
  Reading cpu_mhz, cpu_mhz_min;           // mean and lowest clock of those cpus
  Reading own_cpus_busy, own_cpus_steal;  // percent of those cpus, by anybody
  Reading major_faults_per_s, minor_faults_per_s;
  Reading preempted_per_s;            // times somebody else took this process's main thread's cpu
  Reading resident, swapped;          // bytes
  Reading read_per_s, written_per_s;  // bytes from and to disks
};
std::span<const ReadingField<ProcessSample>> process_fields();

}  // namespace drivetrain
