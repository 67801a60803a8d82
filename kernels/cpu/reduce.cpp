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

// Two vectors of elements from 2 * Lanes() neighbours, and back to the same places. Which vector an element is in is of
// no concern to elementwise work; for bf16 the halves of each 32-bit word are the cheapest to tell apart.
struct Two {
  VF a, b;
};
template <class T>
HWY_INLINE Two load_two(F32 d, const T* p) {
  return {load(d, p, Full{}), load(d, p + hn::Lanes(d), Full{})};
}
HWY_INLINE Two load_two(F32 d, const bf16* p) {
  const hn::RebindToUnsigned<F32> du32;
  const auto words = hn::LoadU(du32, reinterpret_cast<const std::uint32_t*>(p));
  return {hn::BitCast(d, hn::ShiftLeft<16>(words)), hn::BitCast(d, hn::And(words, hn::Set(du32, 0xffff0000u)))};
}
template <class T>
HWY_INLINE void store_two(F32 d, Two v, std::span<std::byte* const> outs, std::int64_t at) {
  for (std::byte* out : outs) {
    T* p = reinterpret_cast<T*>(out) + at;
    store(d, v.a, p, Full{});
    store(d, v.b, p + hn::Lanes(d), Full{});
  }
}
template <>
HWY_INLINE void store_two<bf16>(F32, Two v, std::span<std::byte* const> outs, std::int64_t at) {
  const hn::RebindToUnsigned<F32> du32;
  const auto upper = hn::Set(du32, 0xffff0000u);
  const auto words = hn::Or(hn::ShiftRight<16>(bf16_bits(v.a)), hn::And(bf16_bits(v.b), upper));
  for (std::byte* out : outs)
    hn::StoreU(words, du32, reinterpret_cast<std::uint32_t*>(reinterpret_cast<bf16*>(out) + at));
}

// outs[k][out_begin + i] = reduction of sources[s][begin + i] for 0 <= i < n, for f32, bf16 and f16. `op` is a constant
// where this is inlined.
template <class T>
HWY_INLINE void reduce_vectors(std::span<std::byte* const> outs, std::int64_t out_begin,
                               std::span<const std::byte* const> sources, Reduction op, std::int64_t begin,
                               std::int64_t n) {
  const F32 d;
  const VF divisor = hn::Set(d, static_cast<float>(sources.size()));
  const auto source = [&](std::size_t s) { return reinterpret_cast<const T*>(sources[s]) + begin; };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto finish = [&](VF v) HWY_ATTR { return op == Reduction::kAverage ? hn::Div(v, divisor) : v; };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    Two total = load_two(d, source(0) + i);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      const Two more = load_two(d, source(s) + i);
      total = {fold(total.a, more.a, op), fold(total.b, more.b, op)};
    }
    store_two<T>(d, {finish(total.a), finish(total.b)}, outs, out_begin + i);
  }
  for (; i < n; i += lanes) {
    const Part part{static_cast<std::size_t>(std::min(lanes, n - i))};
    VF total = load(d, source(0) + i, part);
    for (std::size_t s = 1; s < sources.size(); ++s) total = fold(total, load(d, source(s) + i, part), op);
    for (std::byte* out : outs) store(d, finish(total), reinterpret_cast<T*>(out) + out_begin + i, part);
  }
}

template <class T>
HWY_INLINE void reduce_floats(std::span<std::byte* const> outs, std::int64_t out_begin,
                              std::span<const std::byte* const> sources, Reduction op, std::int64_t begin,
                              std::int64_t n) {
  switch (op) {
    case Reduction::kMax:
      return reduce_vectors<T>(outs, out_begin, sources, Reduction::kMax, begin, n);
    case Reduction::kMin:
      return reduce_vectors<T>(outs, out_begin, sources, Reduction::kMin, begin, n);
    case Reduction::kAverage:
      return reduce_vectors<T>(outs, out_begin, sources, Reduction::kAverage, begin, n);
    default:
      return reduce_vectors<T>(outs, out_begin, sources, Reduction::kSum, begin, n);
  }
}

// For the floats of at most 32 bits; true if it was done.
bool reduce_floats(std::span<std::byte* const> outs, std::int64_t out_begin,
                   std::span<const std::byte* const> sources, DType dtype, Reduction op, std::int64_t begin,
                   std::int64_t n) {
  bool done = false;
  with_compute_type(dtype, [&](auto t) {
    reduce_floats<decltype(t)>(outs, out_begin, sources, op, begin, n);
    done = true;
  });
  return done;
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
        sums[i] = s == 0 ? static_cast<Sum>(x[i]) : static_cast<Sum>(sums[i] + static_cast<Sum>(x[i]));
    }
  }
  if (op == Reduction::kMax || op == Reduction::kMin) return;
  if (op != Reduction::kAverage) {
    for (std::int64_t i = 0; i < n; ++i) tile[i] = static_cast<T>(sums[i]);
    return;
  }
  const auto divisor = static_cast<Signed>(sources.size());
  for (std::int64_t i = 0; i < n; ++i) tile[i] = static_cast<T>(static_cast<Signed>(sums[i]) / divisor);
}

// tile[i] = reduction of sources[s][begin + i].
void reduce_tile(std::byte* tile, std::span<const std::byte* const> sources, DType dtype, Reduction op,
                 std::int64_t begin, std::int64_t n) {
  switch (dtype) {
    case DType::kF64:
      return reduce_plain<double, double>(reinterpret_cast<double*>(tile), sources, op, begin, n);
    case DType::kI32:
      return reduce_plain<std::int32_t, std::uint64_t>(reinterpret_cast<std::int32_t*>(tile), sources, op, begin, n);
    case DType::kI64:
      return reduce_plain<std::int64_t, std::uint64_t>(reinterpret_cast<std::int64_t*>(tile), sources, op, begin, n);
    case DType::kU8:
      if (op != Reduction::kAverage)  // wraps the same in any width
        return reduce_plain<std::uint8_t, std::uint8_t>(reinterpret_cast<std::uint8_t*>(tile), sources, op, begin, n);
      return reduce_plain<std::uint8_t, std::uint64_t>(reinterpret_cast<std::uint8_t*>(tile), sources, op, begin, n);
    default:
      reduce_floats(std::span(&tile, 1), 0, sources, dtype, op, begin, n);
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

// Elements [begin, end). A destination that is a source was just read, so writing it through the cache is the faster
// way even when it is large; then floats go straight from registers to every destination. Otherwise tile by tile: into
// the first-level cache, then to the destinations. Tiles end on cache lines of the first destination.
void reduce_range(std::span<std::byte* const> dsts, std::span<const std::byte* const> sources, DType dtype,
                  Reduction op, bool large, std::int64_t begin, std::int64_t end) {
  alignas(kLineBytes) std::byte tile[kTileBytes];
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  const bool cached =
      !large || std::all_of(dsts.begin(), dsts.end(), [&](auto* dst) { return is_source(dst, sources); });
  if (cached && reduce_floats(dsts, begin, sources, dtype, op, begin, end - begin)) return;
  while (begin < end) {
    const auto address = reinterpret_cast<std::uintptr_t>(dsts[0] + begin * item) % kLineBytes;
    const std::int64_t n = std::min((kTileBytes - static_cast<std::int64_t>(address)) / item, end - begin);
    reduce_tile(tile, sources, dtype, op, begin, n);
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
