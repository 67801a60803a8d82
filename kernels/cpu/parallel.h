// Splits a loop over the threads of this rank. The split never changes a result: whoever reduces does it over fixed
// blocks, not over threads.
#pragma once
#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace drivetrain::cpu {

// The grain for items of `elements` elements each, so that a thread has enough to do to be worth waking.
constexpr std::int64_t grain_of(std::int64_t elements) {
  constexpr std::int64_t kElementsPerThread = 32768;
  return std::max<std::int64_t>(1, kElementsPerThread / std::max<std::int64_t>(1, elements));
}

// Sets the threads of the loops and products that the calling thread starts from now on; others are not affected.
inline void use_threads(int threads) {
  omp_set_num_threads(threads);
}

// Calls f(begin, end) for disjoint ranges that cover [0, n), each of at least `grain` items; inline when one range
// is enough. f must not throw when more than one thread runs.
template <class F>
void parallel_for(std::int64_t n, std::int64_t grain, F&& f) {
  if (n <= 0) return;
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), (n + grain - 1) / grain);
  if (threads <= 1) {
    f(std::int64_t{0}, n);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    const std::int64_t t = omp_get_thread_num(), count = omp_get_num_threads();
    const std::int64_t begin = n * t / count, end = n * (t + 1) / count;
    if (begin < end) f(begin, end);
  }
}

}  // namespace drivetrain::cpu
