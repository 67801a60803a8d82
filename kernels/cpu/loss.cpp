#include "kernels/cpu/loss.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/loss.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

template <class T>
HWY_INLINE float max_of(const T* z, std::int64_t n) {
  const F32 d;
  const VF lowest = hn::Neg(hn::Inf(d));
  VF top = lowest;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) top = hn::Max(top, load(d, z + i, Full{}));
  float result = max_lanes(d, top);
  for (; i < n; ++i) result = std::max(result, static_cast<float>(z[i]));
  return result;
}

// sum of exp(z - shift)
template <class T>
HWY_INLINE float sum_exp(const T* z, float shift, std::int64_t n) {
  const F32 d;
  const VF offset = hn::Set(d, shift);
  VF sum = hn::Zero(d);
  for_vectors(n, [&](std::int64_t i, auto lanes) HWY_ATTR {
    sum = hn::Add(sum, keep(d, exp(d, hn::Sub(load(d, z + i, lanes), offset)), lanes));
  });
  return sum_lanes(d, sum);
}

// Maximum and sum in one pass over memory: chunk by chunk, each read twice while it is in the first-level cache, with
// the sum so far rescaled when the maximum grows. NaN ends up in the sum.
template <class T>
HWY_INLINE void softmax_stats(float* stats, const T* z, std::int64_t n) {
  constexpr std::int64_t kChunk = 2048;
  float top = -std::numeric_limits<float>::infinity();
  double sum = 0;
  for (std::int64_t i = 0; i < n; i += kChunk) {
    const std::int64_t count = std::min(kChunk, n - i);
    const float chunk_top = max_of(z + i, count);
    if (chunk_top > top) {
      sum *= std::exp(static_cast<double>(top) - static_cast<double>(chunk_top));
      top = chunk_top;
    }
    sum += static_cast<double>(sum_exp(z + i, std::isinf(top) && top < 0 ? 0.0f : top, count));
  }
  stats[0] = top;
  stats[1] = static_cast<float>(sum);
}

void loss_stats_rows(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t cols = logits.dim(-1);
  with_compute_type(logits.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t m = begin; m < end; ++m) {
      float* out = row<float>(stats, m, 3);
      const std::int32_t target = *row<std::int32_t>(targets, m, 1);
      std::fill(out, out + 3, 0.0f);
      if (target == Ops::kIgnore) continue;
      const T* z = row<T>(logits, m, cols);
      softmax_stats(out, z, slice.count);
      const std::int64_t local = target - slice.begin;
      if (local >= 0 && local < slice.count) out[2] = static_cast<float>(z[local]);
    }
  });
}

// In place: z = exp(z - top) factor.
template <class T>
HWY_INLINE void softmax_in_place(T* z, float top, float factor, std::int64_t n) {
  const F32 d;
  const VF offset = hn::Set(d, top), scale = hn::Set(d, factor);
  for_vectors(n, [&](std::int64_t i, auto lanes) HWY_ATTR {
    store(d, hn::Mul(exp(d, hn::Sub(load(d, z + i, lanes), offset)), scale), z + i, lanes);
  });
}

// Row m of the gradient, given the maximum and the sum of exp(z - maximum) over all slices.
void loss_grad_row(Tensor logits, std::int64_t m, std::int64_t local_target, std::int64_t count, float top,
                   double sum, float scale) {
  const std::int64_t cols = logits.dim(-1);
  with_compute_type(logits.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    T* z = row<T>(logits, m, cols);
    const bool here = local_target >= 0 && local_target < count;
    const double target_logit = here ? static_cast<double>(static_cast<float>(z[local_target])) : 0.0;
    softmax_in_place(z, top, static_cast<float>(static_cast<double>(scale) / sum), count);
    std::fill(z + count, z + cols, T(0.0f));
    if (here) {
      const double p = std::exp(target_logit - static_cast<double>(top)) / sum;
      z[local_target] = T(static_cast<float>(static_cast<double>(scale) * (p - 1.0)));
    }
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(loss_stats_rows);
HWY_EXPORT(loss_grad_row);

namespace {

struct RowStats {
  float top;      // maximum over all slices
  double sum;     // of exp(z - top) over all slices
  double target;  // logit of the target
};

// Combines the slices' statistics of one row, in slice order.
RowStats combine(const float* all_stats, std::int64_t slices, std::int64_t rows, std::int64_t m) {
  RowStats total{-std::numeric_limits<float>::infinity(), 0, 0};
  for (std::int64_t s = 0; s < slices; ++s) total.top = std::max(total.top, all_stats[(s * rows + m) * 3]);
  for (std::int64_t s = 0; s < slices; ++s) {
    const float* part = all_stats + (s * rows + m) * 3;
    if (part[1] != 0) {
      total.sum +=
          static_cast<double>(part[1]) * std::exp(static_cast<double>(part[0]) - static_cast<double>(total.top));
    }
    total.target += static_cast<double>(part[2]);
  }
  return total;
}

std::int64_t check_stats(const OpCheck& check, Tensor all_stats, std::int64_t rows) {
  check.that(all_stats.ndim == 3, "all_stats must be (slices, rows, 3)");
  check.flat("all_stats", all_stats, DType::kF32, all_stats.dim(0) * rows * 3);
  return all_stats.dim(0);
}

void check_slice(const OpCheck& check, Tensor logits, Tensor targets, VocabSlice slice) {
  check.compute("logits", logits);
  check.flat("targets", targets, DType::kI32, rows_of(logits));
  check.that(slice.count >= 0 && slice.count <= logits.dim(-1),
             "slice of " + std::to_string(slice.count) + " ids in logits " + logits.describe());
}

}  // namespace

void loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice) {
  const OpCheck check("loss_stats");
  check_slice(check, logits, targets, slice);
  const std::int64_t rows = targets.count();
  check.matrix("stats", stats, DType::kF32, rows, 3);
  parallel_for(rows, grain_of(8 * slice.count), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(loss_stats_rows)(stats, logits, targets, slice, begin, end);
  });
}

void loss_sum(Tensor loss_sum, Tensor all_stats, Tensor targets) {
  const OpCheck check("loss_sum");
  check.flat("loss_sum", loss_sum, DType::kF64, 1);
  const auto target_of = targets.span<std::int32_t>();
  const std::int64_t rows = targets.count(), slices = check_stats(check, all_stats, rows);
  double sum = 0;
  for (std::int64_t m = 0; m < rows; ++m) {
    if (target_of[static_cast<std::size_t>(m)] == Ops::kIgnore) continue;
    const RowStats s = combine(all_stats.as<float>(), slices, rows, m);
    sum += std::log(s.sum) + (static_cast<double>(s.top) - s.target);
  }
  *loss_sum.as<double>() += sum;
}

void loss_grad(Tensor logits, Tensor all_stats, Tensor targets, VocabSlice slice, float scale) {
  const OpCheck check("loss_grad");
  check_slice(check, logits, targets, slice);
  const std::int64_t rows = targets.count(), slices = check_stats(check, all_stats, rows);
  const std::int32_t* target_of = targets.as<std::int32_t>();
  const std::size_t row_bytes = static_cast<std::size_t>(logits.dim(-1)) * size_of(logits.dtype);
  parallel_for(rows, grain_of(8 * slice.count), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t m = begin; m < end; ++m) {
      if (target_of[m] == Ops::kIgnore) {
        std::memset(logits.data + static_cast<std::size_t>(m) * row_bytes, 0, row_bytes);
        continue;
      }
      const RowStats s = combine(all_stats.as<float>(), slices, rows, m);
      HWY_DYNAMIC_DISPATCH(loss_grad_row)
      (logits, m, target_of[m] - slice.begin, slice.count, s.top, s.sum, scale);
    }
  });
}

}  // namespace drivetrain::cpu
#endif
