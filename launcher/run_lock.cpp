#include "launcher/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "kernels/error.h"
#include "runtime/log.h"

namespace drivetrain {

RunLock::RunLock(const std::filesystem::path& run_folder) {
  const std::filesystem::path file = run_folder / "lock";
  file_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) throw Error(ErrorKind::kIo, file.string() + ": cannot be opened");
  if (flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    std::array<char, 128> holder{};
    const ssize_t n = pread(file_, holder.data(), holder.size() - 1, 0);
    close(file_);
    throw Error(ErrorKind::kUsage, run_folder.string() + " is in use by another job (" +
                                       std::string(holder.data(), static_cast<std::size_t>(n > 0 ? n : 0)) +
                                       "); wait for it, or choose another run.name");
  }
  const std::string me = "pid " + std::to_string(getpid()) + " on " + short_host_name();
  // Should this fail, only the message of a second job misses the holder's name.
  [[maybe_unused]] const bool named = ftruncate(file_, 0) == 0 && pwrite(file_, me.data(), me.size(), 0) >= 0;
}

RunLock::~RunLock() {
  close(file_);
}

}  // namespace drivetrain
