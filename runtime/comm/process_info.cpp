#include "runtime/comm/process_info.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace drivetrain {
namespace {

struct ProcStat {
  char state = 0;  // 0: not there
  std::uint64_t start_time = 0;
};

// Fields 3 and 22 of /proc/<pid>/stat; the command name before them may hold spaces and brackets.
ProcStat read_stat(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  const auto end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos) return {};
  std::istringstream rest(line.substr(end_of_name + 1));
  ProcStat stat;
  rest >> stat.state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  rest >> stat.start_time;
  return stat;
}

}  // namespace

const char* name(ProcessState state) {
  switch (state) {
    case ProcessState::kRunning:
      return "running";
    case ProcessState::kStopped:
      return "stopped";
    case ProcessState::kGone:
      return "gone";
    case ProcessState::kUnknown:
      return "state unknown";
  }
  return "?";
}

std::uint64_t process_start_time(int pid) {
  return read_stat(pid).start_time;
}

ProcessState process_state(int pid, std::uint64_t start_time) {
  if (start_time == 0) return ProcessState::kUnknown;
  const ProcStat stat = read_stat(pid);
  if (stat.state == 0 || stat.start_time != start_time || stat.state == 'Z' || stat.state == 'X')
    return ProcessState::kGone;
  return stat.state == 'T' || stat.state == 't' ? ProcessState::kStopped : ProcessState::kRunning;
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0) return "unknown host";
  return buffer.data();
}

}  // namespace drivetrain
