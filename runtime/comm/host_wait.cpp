#include "runtime/comm/host_wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstring>

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

void usable_cores(std::uint64_t (&mask)[kCoreWords]) {
  cpu_set_t set;
  static_assert(sizeof set == sizeof mask);
  if (sched_getaffinity(0, sizeof set, &set) != 0) {
    CPU_ZERO(&set);
    CPU_SET(0, &set);
  }
  std::memcpy(mask, &set, sizeof set);
}

void wake(const Counter& counter) {
  // A sleeper counts itself before it looks at the word again. Of the two additions one is the later: either it reads
  // the other's and we wake the sleeper, or the sleeper reads ours and with it the word's new value.
  if (counter.sleepers.fetch_add(0, std::memory_order_seq_cst) != 0) futex_wake_all(counter.word);
}

void publish(PhaseFlag& flag, std::uint32_t phase) {
  flag.phase.store(phase, std::memory_order_release);
  wake(counter_of(flag));
}

bool Patience::pause(const Counter& counter, std::uint32_t seen) {
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
  counter.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (counter.word.load(std::memory_order_acquire) == seen) futex_wait(counter.word, seen, kSleepNs);
  counter.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return true;
}

}  // namespace drivetrain
