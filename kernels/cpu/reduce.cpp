#include "kernels/cpu/reduce.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/reduce.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

constexpr std::int64_t kTileBytes = 4096;
constexpr std::int64_t kLineBytes = 64;

HWY_INLINE VF fold(VF a, VF b, Reduction op) {
  if (op == Reduction::kMax) return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b);
  if (op == Reduction::kMin) return hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::IsNaN(a)), a, b);
  return hn::Add(a, b);
}

// tile[i] = reduction of sources[s][begin + i], for f32, bf16 and f16. `op` is a constant where this is inlined.
template <class T>
HWY_INLINE void reduce_vectors(T* tile, std::span<const std::byte* const> sources, Reduction op, std::int64_t begin,
                               std::int64_t n) {
  const F32 d;
  const VF divisor = hn::Set(d, static_cast<float>(sources.size()));
  const auto source = [&](std::size_t s) { return reinterpret_cast<const T*>(sources[s]) + begin; };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto finish = [&](VF v) HWY_ATTR { return op == Reduction::kAverage ? hn::Div(v, divisor) : v; };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const T* first = source(0) + i;
    VF a = load(d, first, Full{}), b = load(d, first + lanes, Full{});
    for (std::size_t s = 1; s < sources.size(); ++s) {
      a = fold(a, load(d, source(s) + i, Full{}), op);
      b = fold(b, load(d, source(s) + i + lanes, Full{}), op);
    }
    store(d, finish(a), tile + i, Full{});
    store(d, finish(b), tile + i + lanes, Full{});
  }
  for (; i < n; i += lanes) {
    const Part part{static_cast<std::size_t>(std::min(lanes, n - i))};
    VF a = load(d, source(0) + i, part);
    for (std::size_t s = 1; s < sources.size(); ++s) a = fold(a, load(d, source(s) + i, part), op);
    store(d, finish(a), tile + i, part);
  }
}

template <class T>
HWY_INLINE void reduce_tile(T* tile, std::span<const std::byte* const> sources, Reduction op, std::int64_t begin,
                            std::int64_t n) {
  switch (op) {
    case Reduction::kMax:
      return reduce_vectors(tile, sources, Reduction::kMax, begin, n);
    case Reduction::kMin:
      return reduce_vectors(tile, sources, Reduction::kMin, begin, n);
    case Reduction::kAverage:
      return reduce_vectors(tile, sources, Reduction::kAverage, begin, n);
    default:
      return reduce_vectors(tile, sources, Reduction::kSum, begin, n);
  }
}

// The same for f64 and integers, whose sums are kept in Sum; loops that the compiler vectorises.
template <class T, class Sum>
HWY_INLINE void reduce_plain(T* tile, std::span<const std::byte* const> sources, Reduction op, std::int64_t begin,
                             std::int64_t n) {
  Sum sums[kTileBytes / sizeof(T)];
  using Signed = std::conditional_t<std::is_same_v<Sum, double>, double, std::int64_t>;
  for (std::size_t s = 0; s < sources.size(); ++s) {
    const T* x = reinterpret_cast<const T*>(sources[s]) + begin;
    if (op == Reduction::kMax || op == Reduction::kMin) {
      for (std::int64_t i = 0; i < n; ++i) {
        const bool better = op == Reduction::kMax ? x[i] > tile[i] : x[i] < tile[i];
        tile[i] = s == 0 || better || x[i] != x[i] ? x[i] : tile[i];
      }
    } else {
      for (std::int64_t i = 0; i < n; ++i)
        sums[i] = s == 0 ? static_cast<Sum>(x[i]) : sums[i] + static_cast<Sum>(x[i]);
    }
  }
  if (op == Reduction::kMax || op == Reduction::kMin) return;
  const auto divisor = static_cast<Signed>(op == Reduction::kAverage ? sources.size() : 1);
  for (std::int64_t i = 0; i < n; ++i) tile[i] = static_cast<T>(static_cast<Signed>(sums[i]) / divisor);
}

void reduce_any_tile(std::byte* tile, std::span<const std::byte* const> sources, DType dtype, Reduction op,
                     std::int64_t begin, std::int64_t n) {
  switch (dtype) {
    case DType::kF32:
      return reduce_tile(reinterpret_cast<float*>(tile), sources, op, begin, n);
    case DType::kBF16:
      return reduce_tile(reinterpret_cast<bf16*>(tile), sources, op, begin, n);
    case DType::kF16:
      return reduce_tile(reinterpret_cast<f16*>(tile), sources, op, begin, n);
    case DType::kF64:
      return reduce_plain<double, double>(reinterpret_cast<double*>(tile), sources, op, begin, n);
    case DType::kI32:
      return reduce_plain<std::int32_t, std::uint64_t>(reinterpret_cast<std::int32_t*>(tile), sources, op, begin, n);
    case DType::kI64:
      return reduce_plain<std::int64_t, std::uint64_t>(reinterpret_cast<std::int64_t*>(tile), sources, op, begin, n);
    case DType::kU8:
      return reduce_plain<std::uint8_t, std::uint64_t>(reinterpret_cast<std::uint8_t*>(tile), sources, op, begin, n);
  }
}

// memcpy that bypasses the cache.
HWY_INLINE void stream_bytes(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % hn::Lanes(d));
  std::int64_t i = misaligned == 0 ? 0 : std::min(bytes, lanes - misaligned);
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + lanes <= bytes; i += lanes) {
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + i)), d,
               reinterpret_cast<std::uint8_t*>(to + i));
  }
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

bool is_source(const std::byte* dst, std::span<const std::byte* const> sources) {
  return std::find(sources.begin(), sources.end(), dst) != sources.end();
}

// Elements [begin, end), tile by tile: reduce into the first-level cache, then hand the tile to every destination.
// Tiles end on cache lines of the first destination. A destination that is a source was just read, so writing it
// through the cache is the faster way even when it is large.
void reduce_range(std::span<std::byte* const> dsts, std::span<const std::byte* const> sources, DType dtype,
                  Reduction op, bool large, std::int64_t begin, std::int64_t end) {
  alignas(kLineBytes) std::byte tile[kTileBytes];
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  while (begin < end) {
    const auto address = reinterpret_cast<std::uintptr_t>(dsts[0] + begin * item) % kLineBytes;
    const std::int64_t n = std::min((kTileBytes - static_cast<std::int64_t>(address)) / item, end - begin);
    reduce_any_tile(tile, sources, dtype, op, begin, n);
    for (std::byte* dst : dsts) {
      if (large && !is_source(dst, sources)) {
        stream_bytes(dst + begin * item, tile, n * item);
      } else {
        std::memcpy(dst + begin * item, tile, static_cast<std::size_t>(n * item));
      }
    }
    begin += n;
  }
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(reduce_range);

void reduce(std::span<std::byte* const> dsts, std::span<const std::byte* const> sources, DType dtype, Reduction op,
            std::int64_t count, int threads) {
  const OpCheck check("reduce");
  check.that(!dsts.empty() && !sources.empty(), "needs at least one source and one destination");
  // Beyond a few megabytes results that go elsewhere would only push the next sources out of the cache.
  constexpr std::size_t kLargeBytes = std::size_t{4} << 20;
  const bool large = static_cast<std::size_t>(count) * size_of(dtype) * dsts.size() >= kLargeBytes;
  const std::int64_t grain = std::max(grain_of(1), (count + threads - 1) / threads);
  parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(reduce_range)(dsts, sources, dtype, op, large, begin, end);
    if (large) hwy::FlushStream();
  });
}

}  // namespace drivetrain::cpu
#endif
