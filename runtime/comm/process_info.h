// What /proc says about a process: identity that survives pid reuse, and whether it runs, is stopped or gone.
#pragma once
#include <cstdint>
#include <string>

namespace drivetrain {

enum class ProcessState { kRunning, kStopped, kGone, kUnknown };
const char* name(ProcessState state);

// Start time of a process in clock ticks after boot; 0 when /proc does not show it.
std::uint64_t process_start_time(int pid);
// kGone when no process with this pid and start time exists, or only its zombie; kUnknown for start_time 0.
ProcessState process_state(int pid, std::uint64_t start_time);
std::string host_name();

}  // namespace drivetrain
