#include "launcher/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "kernels/error.h"
#include "launcher/machine_facts.h"

namespace drivetrain {
namespace {

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Error(ErrorKind::kLaunch, std::string("cannot open a pipe: ") + std::strerror(errno));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// Between fork and exec: only calls that are safe after a fork.
[[noreturn]] void become(char* const* argv, char* const* environment, int out, int err, int report, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(143);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGUSR1, SIG_IGN);  // one that arrives before mpirun handles it must not kill it
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
    execve(argv[0], argv, environment);
  const int fault = errno;
  [[maybe_unused]] const ssize_t written = write(report, &fault, sizeof fault);
  _exit(127);
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

int FileDescriptor::release() {
  return std::exchange(fd_, -1);
}

ChildProcess::ChildProcess(const std::vector<std::string>& argv, const Environment& environment) {
  std::vector<std::string> words = argv, variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const std::vector<char*> word_list = pointers(words), variable_list = pointers(variables);
  Pipe out = make_pipe(), err = make_pipe(), report = make_pipe();
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw Error(ErrorKind::kLaunch, "cannot fork: " + std::string(std::strerror(errno)));
  if (pid_ == 0) {
    become(word_list.data(), variable_list.data(), out.write.get(), err.write.get(), report.write.get(), parent);
  }
  setpgid(pid_, pid_);  // whoever of the two comes first
  report.write = FileDescriptor();
  int fault = 0;
  if (read(report.read.get(), &fault, sizeof fault) == static_cast<ssize_t>(sizeof fault)) {
    waitpid(pid_, nullptr, 0);
    throw Error(ErrorKind::kLaunch, "cannot start " + argv[0] + ": " + std::strerror(fault));
  }
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  fcntl(err_.get(), F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0 || exit_code_) return;
  signal_group(SIGKILL);
  for (int tries = 0; tries < 50 && !poll_exit(); ++tries) usleep(20000);
}

std::optional<int> ChildProcess::poll_exit() {
  if (exit_code_) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return exit_code_;
}

void ChildProcess::signal(int number) const {
  if (!exit_code_) kill(pid_, number);
}

void ChildProcess::signal_group(int number) const {
  kill(-pid_, number);
}

std::string output_of(const std::vector<std::string>& argv) {
  std::string text;
  try {
    ChildProcess child(argv, own_environment());
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::array<pollfd, 2> streams{pollfd{child.out(), POLLIN, 0}, pollfd{child.err(), POLLIN, 0}};
    while (std::any_of(streams.begin(), streams.end(), [](const pollfd& s) { return s.fd >= 0; })) {
      if (std::chrono::steady_clock::now() > end) return "";
      poll(streams.data(), streams.size(), 100);
      for (pollfd& stream : streams) {
        if (stream.fd < 0 || stream.revents == 0) continue;
        char buffer[4096];
        const ssize_t count = read(stream.fd, buffer, sizeof buffer);
        if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) stream.fd = -1;
      }
    }
  } catch (const Error&) {
    return "";
  }
  return text;
}

std::vector<pid_t> processes_with(const std::string& name, const std::string& value) {
  const std::string wanted = std::string(1, '\0') + name + "=" + value + std::string(1, '\0');
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string text = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), pid);
    if (status != std::errc() || end != text.data() + text.size() || pid == getpid()) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    std::ostringstream all;
    all << '\0' << file.rdbuf();
    if (all.str().find(wanted) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace drivetrain
