// What the host did to this thread and process since the last look. Belongs to the thread that made it; a look is three
// system calls on files and clocks kept open.
#pragma once
#include <cstdint>

namespace drivetrain {

struct HostUse {
  std::int64_t cpu_ns = 0;        // this thread ran
  std::int64_t run_delay_ns = 0;  // it was ready, and others had the core; 0 where Linux does not say
  std::int64_t major_faults = 0, minor_faults = 0;  // of the whole process
};

class HostProbe {
 public:
  HostProbe();
  ~HostProbe();
  HostProbe(const HostProbe&) = delete;
  HostProbe& operator=(const HostProbe&) = delete;
  HostUse since_last();

 private:
  HostUse totals() const;

  int schedstat_ = -1;
  HostUse last_;
};

}  // namespace drivetrain
