// One training job at a time in a run folder: an advisory lock on runs/<name>/lock, held by rank 0 while it lives and
// given back by the kernel however the process ends. Where the file system has no locks, nothing is guarded.
#pragma once
#include <filesystem>

namespace drivetrain {

class RunLock {
 public:
  // Throws kUsage naming the folder and who holds it.
  explicit RunLock(const std::filesystem::path& run_folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int file_ = -1;
};

}  // namespace drivetrain
