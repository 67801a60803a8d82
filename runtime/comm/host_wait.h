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
// Cores this process may use.
int usable_cores();

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

  // Spins, yields or sleeps (at most 20 ms, or until the flag moves away from `seen`). Returns true after it has slept
  // or yielded for a while: time to look at the deadline and at the peers.
  bool pause(PhaseFlag& flag, std::uint32_t seen);

 private:
  int spins_left_;
  int yields_left_ = 64;
};

}  // namespace drivetrain
