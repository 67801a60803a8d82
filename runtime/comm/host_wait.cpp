#include "runtime/comm/host_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <thread>

namespace drivetrain {
namespace {

// FUTEX_WAIT and FUTEX_WAKE without the private flag work across processes. Their errors (interrupted, value already
// changed, timed out) all mean: look again.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, long timeout_ns) {
  const timespec timeout{0, timeout_ns};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

std::int64_t steady_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

void publish(PhaseFlag& flag, std::uint32_t phase) {
  // Both sides sequentially consistent: either we see the sleeper or it sees the new phase.
  flag.phase.store(phase, std::memory_order_seq_cst);
  if (flag.sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(flag.phase);
}

bool Patience::pause(PhaseFlag& flag, std::uint32_t seen) {
  if (spins_left_ > 0) {
    --spins_left_;
    relax();
    return false;
  }
  if (yields_left_ > 0) {
    --yields_left_;
    sched_yield();
    return yields_left_ % 32 == 0;
  }
  constexpr long kSleepNs = 20'000'000;
  flag.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (flag.phase.load(std::memory_order_seq_cst) == seen) futex_wait(flag.phase, seen, kSleepNs);
  flag.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

}  // namespace drivetrain
