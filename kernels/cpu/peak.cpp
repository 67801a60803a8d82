#include "kernels/cpu/peak.h"

#include <algorithm>
#include <chrono>
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

using Clock = std::chrono::steady_clock;
constexpr auto kTotal = std::chrono::milliseconds(28), kSlice = std::chrono::milliseconds(2);
constexpr std::int64_t kRounds = 4096;  // a few microseconds between two looks at the clock

double best_slice(double (*rounds)(std::int64_t, float&)) {
  float sink = 1;
  double best = 0;
  const auto end = Clock::now() + kTotal;
  while (Clock::now() < end) {
    const auto begin = Clock::now();
    double flops = 0;
    auto now = begin;
    for (; now - begin < kSlice; now = Clock::now()) flops += rounds(kRounds, sink);
    best = std::max(best, flops / std::chrono::duration<double>(now - begin).count());
  }
  // The sums never become 0; the comparison keeps them alive.
  return sink == 0 ? 0 : best;
}

double f32_dispatch(std::int64_t rounds, float& sink) {
  return HWY_DYNAMIC_DISPATCH(f32_rounds)(rounds, sink);
}

}  // namespace

double measure_peak_flops(DType dtype, int threads) {
  const auto rounds = dtype == DType::kBF16 && has_bf16_dot() ? bf16_dot_rounds : f32_dispatch;
  double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : total)
  {
#pragma omp barrier
    total += best_slice(rounds);
  }
  return total;
}

}  // namespace drivetrain::cpu
#endif
