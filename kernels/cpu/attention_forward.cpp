// Attention forward for one item, flash style (Dao et al., "FlashAttention", 2022): tiles of queries against the keys
// that they see, with a running maximum and sum per query.
#include <cmath>
#include <limits>

#include "kernels/cpu/attention_call.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/tile_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_forward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_math-inl.h"
#include "kernels/cpu/tile_product-inl.h"

#ifndef DRIVETRAIN_KERNELS_CPU_ATTENTION_FORWARD_ONCE
#define DRIVETRAIN_KERNELS_CPU_ATTENTION_FORWARD_ONCE
namespace drivetrain::cpu {
namespace {

constexpr std::int64_t kQueryTile = 48, kKeyTile = 192;  // multiples of kTileLanes

template <class Unit>
struct ForwardScratch {
  ForwardScratch(std::byte* base, std::int64_t seq, std::int64_t head_dim) {
    Carver carve(base);
    const std::int64_t width = (units<Unit>(head_dim) + 3) / 4 * 4;
    key_stride = odd_lines(seq);
    keys = carve.take<Unit>(width * key_stride);
    values = carve.take<Unit>(units<Unit>(seq) * padded(head_dim));
    queries = carve.take<Unit>(kQueryTile * units<Unit>(head_dim));
    line = carve.take<Unit>(kTileLanes * width);
    scores = carve.take<float>(kQueryTile * kKeyTile);
    probs = carve.take<Unit>(kQueryTile * kKeyTile);
    out = carve.take<float>(kQueryTile * padded(head_dim));
    max = carve.take<float>(kQueryTile);
    sum = carve.take<float>(kQueryTile);
    keep = carve.take<float>(kKeyTile);
    bytes = carve.bytes();
  }

  std::int64_t key_stride;
  Unit* keys;    // (units(D), key_stride): transposed
  Unit* values;  // (units(T), padded(D))
  Unit* queries;
  Unit* line;
  float* scores;
  Unit* probs;  // (kQueryTile, units(kKeyTile))
  float* out;   // (kQueryTile, padded(D)): not yet divided by the sum
  float *max, *sum;
  float* keep;
  std::size_t bytes;
};

// Queries [begin, end) of one head against keys [key_begin, key_end).
struct ForwardTile {
  std::int64_t b, head, begin, end, key_begin, key_end;
  std::int64_t rows() const { return end - begin; }
  std::int64_t keys() const { return key_end - key_begin; }
};

}  // namespace
}  // namespace drivetrain::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

HWY_INLINE void store_prob(F32 d, VF p, float* row, std::int64_t j) {
  hn::StoreU(p, d, row + j);
}
HWY_INLINE void store_prob(F32 d, VF p, Bf16Pair* row, std::int64_t j) {
  store(d, p, reinterpret_cast<bf16*>(row) + j, Full{});
}

// scores (count, a multiple of kTileLanes; -inf where invisible) -> probs = exp(scale scores - max), the row's maximum
// and sum carried on, the row's output rescaled to the new maximum.
template <class Unit>
void softmax_row(float* scores, Unit* probs, std::int64_t count, float scale, float& max, float& sum, float* out,
                 std::int64_t width) {
  const F32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  VF top = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (std::int64_t j = 0; j < count; j += lanes) top = hn::Max(top, hn::LoadU(d, scores + j));
  const float new_max = std::max(max, scale * max_lanes(d, top));
  const bool seen = new_max > -std::numeric_limits<float>::infinity();
  const VF shift = hn::Set(d, seen ? new_max : 0.0f), factor = hn::Set(d, scale);
  VF total = hn::Zero(d);
  for (std::int64_t j = 0; j < count; j += lanes) {
    const VF p = exp(d, hn::MulSub(factor, hn::LoadU(d, scores + j), shift));
    total = hn::Add(total, p);
    store_prob(d, p, probs, j);
  }
  const float correction = max == new_max ? 1.0f : seen ? std::exp(max - new_max) : 1.0f;
  sum = sum * correction + sum_lanes(d, total);
  max = new_max;
  if (correction == 1.0f) return;
  const VF c = hn::Set(d, correction);
  for (std::int64_t j = 0; j < width; j += lanes) hn::StoreU(hn::Mul(c, hn::LoadU(d, out + j)), d, out + j);
}

HWY_INLINE VF load_prob(F32 d, const float* row, std::int64_t j) {
  return hn::LoadU(d, row + j);
}
HWY_INLINE VF load_prob(F32 d, const Bf16Pair* row, std::int64_t j) {
  return load(d, reinterpret_cast<const bf16*>(row) + j, Full{});
}

template <class Unit>
void drop_row(const AttentionCall& call, const ForwardTile& tile, std::int64_t i, Unit* probs, float* keep) {
  const F32 d;
  const std::int64_t key = call.row_keys.as<std::int64_t>()[tile.b * call.s.seq + tile.begin + i];
  const std::int64_t count = padded(tile.keys());
  keep_scales(keep, key, call.dropout_column(tile.head, tile.key_begin), count, call.dropout);
  for (std::int64_t j = 0; j < count; j += static_cast<std::int64_t>(hn::Lanes(d)))
    store_prob(d, hn::Mul(load_prob(d, probs, j), hn::LoadU(d, keep + j)), probs, j);
}

template <class Unit>
void forward_key_block(const AttentionCall& call, const ForwardTile& tile, const ForwardScratch<Unit>& room) {
  const std::int64_t dim = call.s.head_dim, count = padded(tile.keys());
  const std::int64_t prob_stride = units<Unit>(kKeyTile);
  tile_product(TileProduct<Unit>{room.scores, kKeyTile, room.queries, units<Unit>(dim), 1, room.keys + tile.key_begin,
                                 room.key_stride, tile.rows(), count, units<Unit>(dim), Write::kOverwrite});
  for (std::int64_t i = 0; i < tile.rows(); ++i) {
    float* scores = room.scores + i * kKeyTile;
    const std::int64_t query = tile.begin + i;
    const std::int64_t first = std::clamp<std::int64_t>(call.first_key(tile.b, query) - tile.key_begin, 0, count);
    const std::int64_t last = std::clamp<std::int64_t>(query + 1 - tile.key_begin, 0, count);
    std::fill(scores, scores + first, -std::numeric_limits<float>::infinity());
    std::fill(scores + last, scores + count, -std::numeric_limits<float>::infinity());
    Unit* probs = room.probs + i * prob_stride;
    softmax_row(scores, probs, count, call.s.scale, room.max[i], room.sum[i], room.out + i * padded(dim),
                padded(dim));
    if (call.dropout.p > 0) drop_row(call, tile, i, probs, room.keep);
  }
  tile_product(TileProduct<Unit>{room.out, padded(dim), room.probs, prob_stride, 1,
                                 room.values + tile.key_begin / kPerUnit<Unit> * padded(dim), padded(dim),
                                 tile.rows(), padded(dim), units<Unit>(tile.keys()), Write::kAccumulate});
}

template <class T, class Unit>
void forward_query_tile(const AttentionCall& call, ForwardTile tile, const ForwardScratch<Unit>& room) {
  const F32 d;
  const std::int64_t dim = call.s.head_dim, stride = call.qkv_stride();
  const T* q = reinterpret_cast<const T*>(call.qkv.data) + call.q_begin(tile.b, tile.head) + tile.begin * stride;
  pack_left(room.queries, units<Unit>(dim), q, tile.rows(), dim, stride);
  std::fill(room.out, room.out + kQueryTile * padded(dim), 0.0f);
  std::fill(room.max, room.max + kQueryTile, -std::numeric_limits<float>::infinity());
  std::fill(room.sum, room.sum + kQueryTile, 0.0f);
  const std::int64_t first = call.first_key(tile.b, tile.begin, tile.end) / kTileLanes * kTileLanes;
  for (std::int64_t key = first; key < tile.end; key += kKeyTile) {
    tile.key_begin = key;
    tile.key_end = std::min(key + kKeyTile, tile.end);
    forward_key_block(call, tile, room);
  }
  T* y = reinterpret_cast<T*>(call.y.data) + call.y_begin(tile.b, tile.head) + tile.begin * call.y_stride();
  float* lse = call.lse.as<float>() + call.row_begin(tile.b, tile.head) + tile.begin;
  for (std::int64_t i = 0; i < tile.rows(); ++i) {
    const VF inverse = hn::Set(d, 1.0f / room.sum[i]);
    for_vectors(dim, [&](std::int64_t j, auto lanes) HWY_ATTR {
      store(d, hn::Mul(inverse, hn::LoadU(d, room.out + i * padded(dim) + j)), y + i * call.y_stride() + j, lanes);
    });
    lse[i] = room.max[i] + std::log(room.sum[i]);
  }
}

template <class T, class Unit>
void forward(const AttentionCall& call, std::int64_t item, std::byte* scratch) {
  const std::int64_t seq = call.s.seq, dim = call.s.head_dim, stride = call.qkv_stride();
  const std::int64_t b = item / call.s.kv_heads, kv_head = item % call.s.kv_heads;
  const ForwardScratch<Unit> room(scratch, seq, dim);
  const T* qkv = reinterpret_cast<const T*>(call.qkv.data);
  pack_transposed(room.keys, room.key_stride, qkv + call.k_begin(b, kv_head), seq, dim, stride, room.line);
  pack_right(room.values, padded(dim), qkv + call.v_begin(b, kv_head), seq, dim, stride);
  for (std::int64_t head = kv_head * call.group(); head < (kv_head + 1) * call.group(); ++head)
    for (std::int64_t begin = 0; begin < seq; begin += kQueryTile)
      forward_query_tile<T>(call, {b, head, begin, std::min(begin + kQueryTile, seq), 0, 0}, room);
}

void forward_dispatch(const AttentionCall& call, Arithmetic arithmetic, std::int64_t item, std::byte* scratch) {
  if (arithmetic == Arithmetic::kBf16Pairs) return forward<bf16, Bf16Pair>(call, item, scratch);
  with_compute_type(call.qkv.dtype, [&](auto type) HWY_ATTR { forward<decltype(type), float>(call, item, scratch); });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(forward_dispatch);

std::size_t forward_scratch_bytes(const AttentionCall& call) {
  return std::max(ForwardScratch<float>(nullptr, call.s.seq, call.s.head_dim).bytes,
                  ForwardScratch<Bf16Pair>(nullptr, call.s.seq, call.s.head_dim).bytes);
}

void forward_item(const AttentionCall& call, Arithmetic arithmetic, std::int64_t item, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(forward_dispatch)(call, arithmetic, item, scratch);
}

}  // namespace drivetrain::cpu
#endif
