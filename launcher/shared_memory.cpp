#include "launcher/shared_memory.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <fstream>
#include <optional>
#include <set>
#include <system_error>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr char kPrefix[] = "vader_segment.";
constexpr std::time_t kOldSeconds = 60;  // longer than any start lies between making a segment and mapping it

// With a process namespace of its own but the machine's host name, this process shares names with processes that it
// cannot see (a container with --ipc=host --uts=host).
bool sees_every_user_of_its_name() {
  constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC, kFirstUtsNamespace = 0xEFFFFFFE;  // include/linux/proc_ns.h
  struct stat pid {
  }, uts{};
  if (stat("/proc/self/ns/pid", &pid) != 0 || stat("/proc/self/ns/uts", &uts) != 0) return false;
  return pid.st_ino == kFirstPidNamespace || uts.st_ino != kFirstUtsNamespace;
}

// The segments that processes of this user have mapped; nothing when one of them cannot be looked at.
std::optional<std::set<std::string>> mapped_segments() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos || pid == "1") continue;  // init is no rank
    struct stat owner {};
    if (stat(entry.path().c_str(), &owner) != 0 || owner.st_uid != geteuid()) continue;
    errno = 0;
    std::ifstream maps(entry.path() / "maps");
    if (!maps && (errno == EACCES || errno == EPERM)) return std::nullopt;  // else it ended meanwhile
    for (std::string line; std::getline(maps, line);) {
      const auto at = line.rfind(kPrefix);
      if (at != std::string::npos) names.insert(line.substr(at));
    }
  }
  return names;
}

// "vader_segment.<host>.<user>.<job>.<rank>" (btl_vader_component.c of Open MPI 4.1) of this host and user.
bool is_own_segment(const std::string& name) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return false;
  const std::string start = std::string(kPrefix) + host.data() + '.' + std::to_string(geteuid()) + '.';
  return name.starts_with(start) && std::count(name.begin() + static_cast<long>(start.size()), name.end(), '.') == 1;
}

}  // namespace

void check_shared_memory(const std::filesystem::path& folder, int ranks, std::size_t bytes_per_rank) {
  struct statvfs info {};
  if (statvfs(folder.c_str(), &info) != 0) return;  // no such memory: the transports say so themselves
  const std::uint64_t free_bytes = static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
  const std::uint64_t needed = bytes_per_rank * static_cast<std::uint64_t>(ranks);
  if (needed <= free_bytes) return;
  const auto mib = [](std::uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20); };
  throw Error(ErrorKind::kPreflight,
              folder.string() + " is too small: " + std::to_string(ranks) + " ranks need " + std::to_string(needed) +
                  " bytes (" + mib(needed) + " MiB) of shared memory, " + std::to_string(free_bytes) +
                  " are free; enlarge it (docker: --shm-size=" + mib(needed + needed / 8) +
                  "m, else mount -o remount,size=" + mib(needed + needed / 8) + "m " + folder.string() + ")");
}

int remove_open_mpi_leftovers(const std::filesystem::path& folder) noexcept {
  int removed = 0;
  try {
    std::set<std::string> idle;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      struct stat info {};
      if (!is_own_segment(entry.path().filename()) || stat(entry.path().c_str(), &info) != 0) continue;
      if (info.st_uid == geteuid() && std::time(nullptr) - info.st_mtime > kOldSeconds)
        idle.insert(entry.path().filename());
    }
    if (idle.empty() || !sees_every_user_of_its_name()) return 0;
    const auto mapped = mapped_segments();
    if (!mapped) return 0;
    for (const std::string& name : idle)
      if (!mapped->contains(name) && unlink((folder / name).c_str()) == 0) ++removed;
  } catch (const std::exception&) {
    // Tidying is a courtesy; a folder that changes under our feet is somebody else tidying.
  }
  return removed;
}

}  // namespace drivetrain
