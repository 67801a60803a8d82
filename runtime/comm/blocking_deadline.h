// The budget of what cannot be interrupted: steps inside MPI that wait for other processes. When it is used up, the
// process says where it was and ends.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "kernels/error.h"
#include "runtime/comm/watch.h"

namespace drivetrain {

class BlockingDeadline {
 public:
  // `what` is done under the deadline that configuration key `key` sets ("joining the job"). last_words, if any, is told
  // the error before the process ends with its exit code; without it the error goes to stderr.
  using LastWords = std::function<void(const Error&)>;
  BlockingDeadline(std::string what, std::chrono::milliseconds limit, std::string key, LastWords last_words);

  // Where we are, a string literal: "MPI_Init".
  void phase(const char* phase) { phase_.store(phase); }

 private:
  [[noreturn]] void expire();

  std::string what_, key_;
  std::chrono::milliseconds limit_;
  LastWords last_words_;
  std::atomic<const char*> phase_{"start"};
  Watch watch_;
};

}  // namespace drivetrain
