#include "kernels/cpu/peak.h"

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/bf16_dot.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/peak.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// As many sums as fit 16 registers; enough to hide the latency of a multiply-add on every processor known.
double f32_rounds(std::int64_t rounds, float& sink) {
  constexpr int kSums = 12;
  const hn::ScalableTag<float> d;
  const auto a = hn::Set(d, sink), b = hn::Set(d, 0.5f);
  hn::Vec<hn::ScalableTag<float>> sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = hn::Set(d, static_cast<float>(i));  // equal sums would be merged
  for (std::int64_t r = 0; r < rounds; ++r)
    for (auto& sum : sums) sum = hn::MulAdd(sum, b, a);
  auto total = sums[0];
  for (auto& sum : sums) total = hn::Add(total, sum);
  sink = 1 + 1e-6f * hn::GetLane(total);
  return 2.0 * kSums * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

namespace {

HWY_EXPORT(f32_rounds);

constexpr double kTotal_s = 0.028, kSlice_s = 0.002;
constexpr std::int64_t kRounds = 4096;  // a few microseconds between two looks at the clock

// Of this thread's processor time, so that whoever else runs on the machine does not lower the result.
double thread_seconds() {
  timespec t{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
    throw Error(ErrorKind::kDevice, "the system has no clock of a thread's processor time");
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double best_slice(double (*rounds)(std::int64_t, float&)) {
  float sink = 1;
  double best = 0;
  const double start = thread_seconds();
  for (double begin = start; begin - start < kTotal_s;) {
    double flops = 0, now = begin;
    for (; now - begin < kSlice_s; now = thread_seconds()) flops += rounds(kRounds, sink);
    best = std::max(best, flops / (now - begin));
    begin = now;
  }
  // The sums never become 0; the comparison keeps them alive.
  return sink == 0 ? 0 : best;
}

double f32_dispatch(std::int64_t rounds, float& sink) {
  return HWY_DYNAMIC_DISPATCH(f32_rounds)(rounds, sink);
}

}  // namespace

double measure_peak_flops(DType dtype, int threads) {
  thread_seconds();  // throws here rather than inside the threads
  const auto rate = [threads](double (*rounds)(std::int64_t, float&)) {
    double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
    {
#pragma omp barrier
      total += best_slice(rounds);
    }
    return total;
  };
  // On some processors the bf16 dot product is slower than f32: what bf16 data can reach is the better of the two.
  const double f32 = rate(f32_dispatch);
  return dtype == DType::kBF16 && has_bf16_dot() ? std::max(f32, rate(bf16_dot_rounds)) : f32;
}

}  // namespace drivetrain::cpu
#endif
