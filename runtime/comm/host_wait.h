// How a rank waits for a counter in shared memory: spins briefly, then gives its core away, then sleeps. Knows nothing
// of collectives or errors.
#pragma once
#include <cstdint>

#include "runtime/comm/host_layout.h"

namespace drivetrain {

// Signed distance, so that the counters may wrap.
inline bool reached(std::uint32_t phase, std::uint32_t target) {
  return static_cast<std::int32_t>(phase - target) >= 0;
}

std::int64_t steady_now_ns();
// The cores that this process may use, see WorldSlot; one where the system does not say.
void usable_cores(std::uint64_t (&mask)[kCoreWords]);

// A futex word in shared memory, and how many sleep on it (or on its like: the count may be too high).
struct Counter {
  std::atomic<std::uint32_t>& word;
  std::atomic<std::uint32_t>& sleepers;

  bool reached(std::uint32_t target) const {
    return drivetrain::reached(word.load(std::memory_order_acquire), target);
  }
};
inline Counter counter_of(PhaseFlag& flag) {
  return {flag.phase, flag.sleepers};
}

// Wakes whoever sleeps on the counter. To be called after each move of its word.
void wake(const Counter& counter);
// Moves the flag to `phase` and wakes whoever sleeps on it.
void publish(PhaseFlag& flag, std::uint32_t phase);

// Whether a peer will never do its part. It may do it and leave between the first look and the second, so only one that
// is gone and still late is missed.
template <class Late, class Alive>
bool missed(const Late& late, const Alive& alive) {
  return late() && !alive() && late();
}

// One wait. Call pause() while the condition does not hold.
class Patience {
 public:
  // `crowded`: more ranks than cores, so spinning only keeps others from moving.
  enum class Cores { kEnough, kCrowded };
  explicit Patience(Cores cores) : spins_left_(cores == Cores::kEnough ? 2000 : 20) {}

  // Spins, yields or sleeps (at most 20 ms, or until the word moves away from `seen`). Returns true after it has slept
  // or yielded for a while: time to look at the deadline and at the peers.
  bool pause(const Counter& counter, std::uint32_t seen);

 private:
  int spins_left_;
  int yields_left_ = 64;
};

}  // namespace drivetrain
