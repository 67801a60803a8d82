// A child process with pipes, and the search for what a job left behind. Owns one child; never waits without a bound.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/hosts.h"

namespace drivetrain {

// An open file descriptor that closes itself.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }
  int release();

 private:
  int fd_ = -1;
};

// Starts argv in a process group of its own, stdin empty, both outputs in pipes (read ends non-blocking). The child gets
// SIGTERM when this thread dies, and an empty signal mask.
class ChildProcess {
 public:
  // Throws kLaunch naming argv[0] when it cannot be started.
  ChildProcess(const std::vector<std::string>& argv, const Environment& environment);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();  // kills the group when it still runs

  int out() const { return out_.get(); }
  int err() const { return err_.get(); }
  pid_t pid() const { return pid_; }
  // The exit code, 128 + n for signal n, once it has ended; never blocks.
  std::optional<int> poll_exit();
  void signal(int number) const;        // the process; nothing when it has ended
  void signal_group(int number) const;  // its whole group

 private:
  FileDescriptor out_, err_;
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

// Output of a short command, both streams; "" when it does not start or takes longer than 10 s.
std::string output_of(const std::vector<std::string>& argv);

// Living processes of this machine, but this one, whose environment has NAME=VALUE.
std::vector<pid_t> processes_with(const std::string& name, const std::string& value);

}  // namespace drivetrain
