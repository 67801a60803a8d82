#include "runtime/ledger/host_probe.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace drivetrain {

// thread-self is resolved when the file is opened, so the descriptor stays with this thread.
HostProbe::HostProbe() : schedstat_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {
  last_ = totals();
}

HostProbe::~HostProbe() {
  if (schedstat_ >= 0) close(schedstat_);
}

HostUse HostProbe::totals() const {
  HostUse use;
  // schedstat counts the time on the core only up to the last tick; this clock is exact.
  timespec cpu{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) == 0) use.cpu_ns = cpu.tv_sec * 1'000'000'000LL + cpu.tv_nsec;
  char text[96];
  const ssize_t n = schedstat_ < 0 ? 0 : pread(schedstat_, text, sizeof text - 1, 0);
  if (n > 0) {  // "cpu_ns run_delay_ns timeslices"
    text[n] = '\0';
    char* delay = nullptr;
    std::strtoll(text, &delay, 10);
    use.run_delay_ns = std::strtoll(delay, nullptr, 10);
  }
  rusage process{};
  if (getrusage(RUSAGE_SELF, &process) == 0) {
    use.major_faults = process.ru_majflt;
    use.minor_faults = process.ru_minflt;
  }
  return use;
}

HostUse HostProbe::since_last() {
  const HostUse now = totals();
  const HostUse used{now.cpu_ns - last_.cpu_ns, now.run_delay_ns - last_.run_delay_ns,
                     now.major_faults - last_.major_faults, now.minor_faults - last_.minor_faults};
  last_ = now;
  return used;
}

}  // namespace drivetrain
