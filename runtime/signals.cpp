#include "runtime/signals.h"

#include <array>
#include <atomic>
#include <csignal>

#include "kernels/error.h"

namespace drivetrain {
namespace {

// A signal handler can reach nothing but static storage.
constexpr std::array<int, 3> kSignals{SIGTERM, SIGUSR1, SIGINT};
std::atomic<bool> stop_requested{false};
std::atomic<bool> installed{false};
std::array<struct sigaction, kSignals.size()> before;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
  stop_requested.store(true);
  if (number == SIGINT) std::signal(SIGINT, SIG_DFL);  // a second Ctrl-C means now
}

}  // namespace

StopSignals::StopSignals() {
  if (installed.exchange(true)) throw Error(ErrorKind::kLogic, "stop signals are handled by somebody already");
  stop_requested.store(false);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;  // reads and writes in progress go on
    if (sigaction(kSignals[i], &action, &before[i]) != 0)
      throw Error(ErrorKind::kLogic, "cannot install a handler for signal " + std::to_string(kSignals[i]));
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  installed.store(false);
}

bool StopSignals::requested() const {
  return stop_requested.load();
}

}  // namespace drivetrain
