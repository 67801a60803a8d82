// One head of one sequence in generation: the new query against the cached keys and values.
#include <cmath>
#include <limits>

#include "kernels/cpu/attention_call.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_decode.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// scores[j] = scale q . k_j; returns the largest.
template <class T>
float decode_scores(float* scores, const T* q, const T* keys, std::int64_t count, std::int64_t dim,
                    std::int64_t stride, float scale) {
  const F32 d;
  float max = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < count; ++j) {
    VF sum = hn::Zero(d);
    for_vectors(dim, [&](std::int64_t i, auto lanes) HWY_ATTR {
      sum = hn::MulAdd(load(d, q + i, lanes), load(d, keys + j * stride + i, lanes), sum);
    });
    scores[j] = scale * sum_lanes(d, sum);
    max = std::max(max, scores[j]);
  }
  return max;
}

template <class T>
void decode(const AttentionCall& call, const Tensor& cache, std::int64_t item, KeyRange range, float* scratch) {
  const F32 d;
  const std::int64_t b = item / call.s.heads, head = item % call.s.heads, dim = call.s.head_dim;
  const std::int64_t stride = call.s.kv_heads * dim, capacity = cache.dim(2), count = range.end - range.begin;
  const T* q = reinterpret_cast<const T*>(call.qkv.data) + call.q_begin(b, head);
  const T* keys =
      reinterpret_cast<const T*>(cache.data) + (b * capacity + range.begin) * stride + head / call.group() * dim;
  const T* values = keys + call.s.batch * capacity * stride;
  float *scores = scratch, *sums = scratch + count;
  const float max = decode_scores(scores, q, keys, count, dim, stride, call.s.scale);
  std::fill(sums, sums + dim, 0.0f);
  float total = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const float p = std::exp(scores[j] - max);
    total += p;
    for_vectors(dim, [&](std::int64_t i, auto lanes) HWY_ATTR {
      const VF sum = hn::MulAdd(hn::Set(d, p), load(d, values + j * stride + i, lanes), load(d, sums + i, lanes));
      store(d, sum, sums + i, lanes);
    });
  }
  T* y = reinterpret_cast<T*>(call.y.data) + call.y_begin(b, head);
  const VF inverse = hn::Set(d, 1.0f / total);
  for_vectors(dim, [&](std::int64_t i, auto lanes)
                       HWY_ATTR { store(d, hn::Mul(inverse, load(d, sums + i, lanes)), y + i, lanes); });
}

void decode_dispatch(const AttentionCall& call, const Tensor& cache, std::int64_t item, KeyRange range,
                     float* scratch) {
  with_compute_type(call.qkv.dtype,
                    [&](auto type) HWY_ATTR { decode<decltype(type)>(call, cache, item, range, scratch); });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(decode_dispatch);

void decode_head(const AttentionCall& call, const Tensor& cache, std::int64_t item, KeyRange range, float* scratch) {
  HWY_DYNAMIC_DISPATCH(decode_dispatch)(call, cache, item, range, scratch);
}

}  // namespace drivetrain::cpu
#endif
