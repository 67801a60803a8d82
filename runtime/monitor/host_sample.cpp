#include "runtime/monitor/host_sample.h"

#include <array>

namespace drivetrain {
namespace {

using H = HostSample;
using HostField = ReadingField<HostSample>;
constexpr std::array kHost{
    HostField{"cpu_busy", "Percent of all cpus that ran something.", &H::cpu_busy},
    HostField{"cpu_steal", "Percent of all cpus that the hypervisor gave to others.", &H::cpu_steal},
    HostField{"cpu_iowait", "Percent of all cpus that idled while a disk was awaited.", &H::cpu_iowait},
    HostField{"runnable", "Threads that run or wait for a cpu.", &H::runnable},
    HostField{"memory_total", "Bytes of memory.", &H::memory_total},
    HostField{"memory_available", "Bytes of memory that programs can still take.", &H::memory_available},
    HostField{"swap_used", "Bytes swapped out.", &H::swap_used},
    HostField{"major_faults_per_s", "Page faults that read a disk, a second.", &H::major_faults_per_s},
    HostField{"pressure_cpu", "Percent of the time in which some task waited for a cpu.", &H::pressure_cpu},
    HostField{"pressure_io", "Percent of the time in which some task waited for a disk.", &H::pressure_io},
    HostField{"pressure_memory", "Percent of the time in which some task waited for memory.", &H::pressure_memory},
    HostField{"disk_read_per_s", "Bytes read from disks a second.", &H::disk_read_per_s},
    HostField{"disk_written_per_s", "Bytes written to disks a second.", &H::disk_written_per_s},
    HostField{"disk_busy", "Percent of the time in which the busiest disk worked.", &H::disk_busy},
    HostField{"net_received_per_s", "Bytes received from networks a second.", &H::net_received_per_s},
    HostField{"net_sent_per_s", "Bytes sent to networks a second.", &H::net_sent_per_s},
    HostField{"tcp_retransmits_per_s", "TCP segments sent again a second.", &H::tcp_retransmits_per_s},
    HostField{"quota_throttled", "Percent of the time in which the cpu limit stopped the container.",
              &H::quota_throttled},
};

using P = ProcessSample;
using ProcessField = ReadingField<ProcessSample>;
constexpr std::array kProcess{
    ProcessField{"cpu_cores", "Processor time of the rank per second.", &P::cpu_cores},
    ProcessField{"threads", "Threads of the rank.", &P::threads},
    ProcessField{"affinity_cpus", "Cpus that the rank may run on.", &P::affinity_cpus},
    ProcessField{"cpu_mhz", "Mean clock of the rank's cpus in MHz.", &P::cpu_mhz},
    ProcessField{"cpu_mhz_min", "Lowest clock of the rank's cpus in MHz.", &P::cpu_mhz_min},
    ProcessField{"own_cpus_busy", "Percent of the rank's cpus that ran something.", &P::own_cpus_busy},
    ProcessField{"own_cpus_steal", "Percent of the rank's cpus that the hypervisor gave to others.",
                 &P::own_cpus_steal},
    ProcessField{"major_faults_per_s", "Page faults of the rank that read a disk, a second.", &P::major_faults_per_s},
    ProcessField{"minor_faults_per_s", "Page faults of the rank without a disk, a second.", &P::minor_faults_per_s},
    ProcessField{"preempted_per_s", "Times a second the rank's main thread lost its cpu.", &P::preempted_per_s},
    ProcessField{"resident", "Bytes of the rank in memory.", &P::resident},
    ProcessField{"swapped", "Bytes of the rank swapped out.", &P::swapped},
    ProcessField{"read_per_s", "Bytes the rank read from disks a second.", &P::read_per_s},
    ProcessField{"written_per_s", "Bytes the rank wrote to disks a second.", &P::written_per_s},
};

}  // namespace

std::span<const HostField> host_fields() {
  return kHost;
}
std::span<const ProcessField> process_fields() {
  return kProcess;
}

}  // namespace drivetrain
