#include "launcher/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "kernels/error.h"
#include "launcher/process.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr milliseconds kRepeatStop{2000};
constexpr milliseconds kOneRequest{2000};
constexpr milliseconds kLookForNotes{1000};
constexpr milliseconds kGiveUp{3000};     // after SIGKILL
constexpr milliseconds kLeftovers{1500};  // for ranks to end by themselves once mpirun is gone

// Turns the signals of this thread into a file descriptor, for as long as it lives.
class SignalStream {
 public:
  SignalStream() {
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&watched, number);
    sigset_t blocked = watched;
    sigaddset(&blocked, SIGPIPE);
    const int fault = pthread_sigmask(SIG_BLOCK, &blocked, &before_);
    if (fault != 0) throw Error(ErrorKind::kLaunch, std::string("cannot watch signals: ") + std::strerror(fault));
    fd_ = FileDescriptor(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (fd_.get() < 0) throw Error(ErrorKind::kLaunch, std::string("cannot watch signals: ") + std::strerror(errno));
  }
  SignalStream(const SignalStream&) = delete;
  SignalStream& operator=(const SignalStream&) = delete;
  ~SignalStream() {
    sigset_t pipe_only;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    const timespec now{};
    sigtimedwait(&pipe_only, nullptr, &now);  // one that waits would end us when unblocked
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  int fd() const { return fd_.get(); }
  std::optional<int> next() const {
    signalfd_siginfo info{};
    if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  FileDescriptor fd_;
  sigset_t before_{};
};

void write_all(int fd, const std::string& bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t count = write(fd, bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd wait{fd, POLLOUT, 0};
      poll(&wait, 1, 1000);
      continue;
    }
    if (count <= 0) return;  // our reader went away; the files go on
    at += static_cast<std::size_t>(count);
  }
}

class Supervisor {
 public:
  Supervisor(const LaunchPlan& plan, const Attempt& attempt, const SuperviseOptions& options)
      : plan_(plan),
        attempt_(attempt),
        options_(options),
        out_file_(rank_file(attempt.rank_folder(), 0, "out"), std::ios::app),
        err_file_(rank_file(attempt.rank_folder(), 0, "err"), std::ios::app),
        child_(plan.argv, environment(plan)) {}

  Outcome run() {
    attempt_.event("start",
                   {{"ranks", std::to_string(plan_.rank_host.size())}, {"pid", std::to_string(child_.pid())}});
    std::optional<int> code;
    while (!(code = child_.poll_exit()) && !abandoned_) {
      wait_for_news();
      while (const std::optional<int> signal = signals_.next()) on_signal(*signal);
      take_output();
      on_time();
    }
    if (code) sweep();
    take_output();
    write_error(text_.finish());
    Outcome outcome = judge_end(code.value_or(exit_code(ErrorKind::kHang)));
    attempt_.event("end", {{"exit_code", std::to_string(outcome.exit_code)}, {"cause", outcome.text()}});
    return outcome;
  }

 private:
  enum class Stage { kRunning, kStopping, kEnding, kKilled };

  static Environment environment(const LaunchPlan& plan) {
    Environment all = own_environment();
    for (const std::string& name : plan.removed) all.erase(name);
    for (const auto& [name, value] : plan.environment) all[name] = value;
    return all;
  }

  void wait_for_news() {
    std::array<pollfd, 3> sources{pollfd{signals_.fd(), POLLIN, 0}, pollfd{out_open_ ? child_.out() : -1, POLLIN, 0},
                                  pollfd{err_open_ ? child_.err() : -1, POLLIN, 0}};
    const auto left = std::chrono::duration_cast<milliseconds>(next_time() - Clock::now()).count();
    poll(sources.data(), sources.size(), static_cast<int>(std::max<long>(0, left + 1)));
  }

  Clock::time_point next_time() const {
    Clock::time_point next = look_at_;
    if (repeat_at_) next = std::min(next, *repeat_at_);
    if (deadline_) next = std::min(next, *deadline_);
    return next;
  }

  void on_signal(int number) {
    if (number == SIGCHLD) return;
    // Some senders (GNU timeout) signal the process and then its group: that is one request.
    const bool echo = number == SIGTERM && stop_signal_ == SIGTERM && Clock::now() - stop_asked_ < kOneRequest;
    const bool again = !echo && stage_ != Stage::kRunning && (number == SIGINT || number == SIGTERM);
    attempt_.event("signal", {{"name", sigabbrev_np(number)}});
    if (stop_signal_ == 0) {
      stop_signal_ = number;
      stop_asked_ = Clock::now();
    }
    if (again && stage_ == Stage::kStopping) {
      log_warn("second stop signal: ending the job now, without a checkpoint");
      impatient_ = true;
      return end_job();
    }
    if (again) return kill_job();
    if (stage_ != Stage::kRunning) return;
    log_info("stop asked for (SIG" + std::string(sigabbrev_np(number)) +
             "): the ranks save a checkpoint, for up to " + std::to_string(options_.grace.count() / 1000) +
             " s; once more ends them now");
    stage_ = Stage::kStopping;
    deadline_ = Clock::now() + options_.grace;
    ask_to_stop();
  }

  void ask_to_stop() {
    child_.signal(SIGUSR1);
    repeat_at_ = Clock::now() + kRepeatStop;
  }

  void end_job() {
    stage_ = Stage::kEnding;
    repeat_at_.reset();
    deadline_ = Clock::now() + options_.after_term;
    attempt_.event("terminate", {});
    child_.signal(SIGTERM);
  }

  void kill_job() {
    stage_ = Stage::kKilled;
    deadline_ = Clock::now() + kGiveUp;
    attempt_.event("kill", {});
    child_.signal_group(SIGKILL);
    for (const pid_t pid : leftovers()) kill(pid, SIGKILL);
  }

  void on_time() {
    const auto now = Clock::now();
    if (now >= look_at_) look_for_failures();
    if (repeat_at_ && now >= *repeat_at_) ask_to_stop();
    if (!deadline_ || now < *deadline_) return;
    switch (stage_) {
      case Stage::kStopping:
        log_error("the ranks did not stop within " + std::to_string(options_.grace.count() / 1000) +
                  " s; ending them");
        timed_out_ = true;
        return end_job();
      case Stage::kRunning:
        return end_job();
      case Stage::kEnding:
        return kill_job();
      case Stage::kKilled:
        log_error("mpirun (process " + std::to_string(child_.pid()) + ") cannot be killed; leaving it behind");
        abandoned_ = true;
        return;
    }
  }

  // A rank that has failed must end the job soon, whatever keeps its process or mpirun.
  void look_for_failures() {
    look_at_ = Clock::now() + kLookForNotes;
    if (failure_seen_ || stage_ == Stage::kEnding || stage_ == Stage::kKilled) return;
    const bool by_engine =
        text_.verdict().has_value() && text_.verdict()->exit_code != exit_code(ErrorKind::kStopped);
    if (!by_engine && attempt_.failures().empty()) return;
    failure_seen_ = true;
    stage_ = Stage::kRunning;
    repeat_at_.reset();
    deadline_ = Clock::now() + options_.after_failure;
    attempt_.event("rank failed", {});
  }

  void take_output() {
    const std::string out = drain(child_.out(), out_open_);
    if (!out.empty()) {
      write_all(STDOUT_FILENO, out);
      out_file_ << out << std::flush;
    }
    const std::string err = drain(child_.err(), err_open_);
    if (!err.empty()) write_error(text_.feed(err));
    if (text_.verdict() && !failure_seen_) look_at_ = std::min(look_at_, Clock::now());
  }

  void write_error(const std::string& text) {
    if (text.empty()) return;
    write_all(STDERR_FILENO, text);
    err_file_ << text << std::flush;
  }

  static std::string drain(int fd, bool& open) {
    std::string bytes;
    char buffer[16384];
    while (open && bytes.size() < std::size_t{1} << 20) {
      const ssize_t count = read(fd, buffer, sizeof buffer);
      if (count > 0) bytes.append(buffer, static_cast<std::size_t>(count));
      if (count < 0 && errno == EINTR) continue;
      if (count == 0 || (count < 0 && errno != EAGAIN)) open = false;
      if (count <= 0) break;
    }
    return bytes;
  }

  std::vector<pid_t> leftovers() const { return processes_with(kJobVariable, plan_.environment.at(kJobVariable)); }

  // mpirun is gone; its ranks end by themselves in a moment, or by our hand.
  void sweep() {
    const auto end = Clock::now() + kLeftovers;
    std::vector<pid_t> left = leftovers();
    while (!left.empty() && Clock::now() < end) {
      take_output();
      std::this_thread::sleep_for(milliseconds(50));
      left = leftovers();
    }
    for (const pid_t pid : left) kill(pid, SIGKILL);
    if (!left.empty()) {
      log_warn("killed " + std::to_string(left.size()) + " processes that the job left behind");
      attempt_.event("swept", {{"processes", std::to_string(left.size())}});
    }
  }

  Outcome judge_end(int engine_code) const {
    Outcome outcome = judge({engine_code, text_.verdict(), text_.last_lines(), attempt_.failures(), plan_.rank_host});
    if (stop_signal_ != 0 && outcome.exit_code == 128 + SIGUSR1) {
      return {128 + stop_signal_, engine_code, outcome.world_rank, outcome.host,
              "stopped before it listened for stop signals; nothing was saved"};
    }
    if (failure_seen_ && outcome.world_rank >= 0) return outcome;
    if (impatient_) return {128 + stop_signal_, engine_code, -1, "", "ended at once on a second stop signal"};
    if (timed_out_ || abandoned_) {
      return {exit_code(ErrorKind::kHang), engine_code, -1, "",
              timed_out_ ? "the ranks did not stop in time and were ended" : "mpirun could not be killed"};
    }
    return outcome;
  }

  const LaunchPlan& plan_;
  const Attempt& attempt_;
  const SuperviseOptions& options_;
  std::ofstream out_file_, err_file_;  // rank 0's
  SignalStream signals_;               // before the child, so that none is lost
  ChildProcess child_;
  EngineText text_;
  bool out_open_ = true, err_open_ = true;
  Stage stage_ = Stage::kRunning;
  Clock::time_point look_at_ = Clock::now();
  std::optional<Clock::time_point> deadline_, repeat_at_;
  int stop_signal_ = 0;
  Clock::time_point stop_asked_{};
  bool failure_seen_ = false, impatient_ = false, timed_out_ = false, abandoned_ = false;
};

}  // namespace

Outcome supervise(const LaunchPlan& plan, const Attempt& attempt, const SuperviseOptions& options) {
  return Supervisor(plan, attempt, options).run();
}

}  // namespace drivetrain
