// Attention backward for one item (Dao et al., "FlashAttention", 2022, algorithm 4): probabilities are recomputed from
// the saved log-sum-exp; dk and dv are summed in f32 over all query heads of the kv head.
#include "kernels/cpu/attention_call.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/tile_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_math-inl.h"
#include "kernels/cpu/tile_product-inl.h"

#ifndef DRIVETRAIN_KERNELS_CPU_ATTENTION_BACKWARD_ONCE
#define DRIVETRAIN_KERNELS_CPU_ATTENTION_BACKWARD_ONCE
#include <limits>

namespace drivetrain::cpu {
namespace {

constexpr std::int64_t kQueryTile = 48, kKeyTile = 192;  // multiples of kTileLanes

// A (queries, keys) tile of probabilities or score gradients as left operand: by rows, and by columns for products
// over queries. In f32 both are the same memory.
template <class Unit>
struct TileOperand;
template <>
struct TileOperand<float> {
  explicit TileOperand(Carver& carve) : by_rows(carve.take<float>(kQueryTile * kKeyTile)), by_columns(by_rows) {}
  float *by_rows, *by_columns;
};
template <>
struct TileOperand<Bf16Pair> {
  explicit TileOperand(Carver& carve)
      : by_rows(carve.take<Bf16Pair>(kQueryTile * kKeyTile / 2)),
        by_columns(carve.take<Bf16Pair>(kQueryTile * kKeyTile / 2)) {}
  Bf16Pair* by_rows;     // (kQueryTile, kKeyTile / 2): pairs of keys
  Bf16Pair* by_columns;  // (kQueryTile / 2, kKeyTile): pairs of queries
};

template <class Unit>
struct BackwardScratch {
  BackwardScratch(Carver carve, std::int64_t seq, std::int64_t head_dim)
      : width((units<Unit>(head_dim) + 3) / 4 * 4),
        key_stride(odd_lines(seq)),
        keys_transposed(carve.take<Unit>(width * key_stride)),
        values_transposed(carve.take<Unit>(width * key_stride)),
        keys(carve.take<Unit>(units<Unit>(seq) * padded(head_dim))),
        line(carve.take<Unit>(kTileLanes * width)),
        q_left(carve.take<Unit>(kQueryTile * width)),
        q_right(carve.take<Unit>(units<Unit>(kQueryTile) * padded(head_dim))),
        dy_left(carve.take<Unit>(kQueryTile * width)),
        dy_right(carve.take<Unit>(units<Unit>(kQueryTile) * padded(head_dim))),
        scores(carve.take<float>(kQueryTile * kKeyTile)),
        dprobs(carve.take<float>(kQueryTile * kKeyTile)),
        probs(carve),
        dscores(carve),
        keep(carve.take<float>(2 * kKeyTile)),
        delta(carve.take<float>(kQueryTile)),
        dq(carve.take<float>(kQueryTile * padded(head_dim))),
        dk(carve.take<float>(seq * padded(head_dim))),
        dv(carve.take<float>(seq * padded(head_dim))),
        bytes(carve.bytes()) {}

  std::int64_t width, key_stride;
  Unit *keys_transposed, *values_transposed;  // (units(D), key_stride)
  Unit* keys;                                 // (units(T), padded(D))
  Unit* line;
  Unit *q_left, *q_right, *dy_left, *dy_right;
  float *scores, *dprobs;  // (kQueryTile, kKeyTile)
  TileOperand<Unit> probs, dscores;
  float *keep, *delta;
  float *dq, *dk, *dv;  // (rows, padded(D))
  std::size_t bytes;
};

// Queries [begin, end) of one head against keys [key_begin, key_end).
struct BackwardTile {
  std::int64_t b, head, begin, end, key_begin, key_end;
  std::int64_t rows() const { return end - begin; }
  std::int64_t keys() const { return key_end - key_begin; }
};

}  // namespace
}  // namespace drivetrain::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// One query row of a tile: its scores (-inf where invisible), gradients of probabilities, and dropout scales.
struct GradRow {
  const float *scores, *dprobs, *keep;  // keep is null without dropout
  float lse, delta;
};

struct ProbAndGrad {
  VF prob, dscore;
};

HWY_INLINE ProbAndGrad grad_at(F32 d, const GradRow& row, float scale, std::int64_t j) {
  const VF factor = hn::Set(d, scale);
  const VF p = exp(d, hn::MulSub(factor, hn::LoadU(d, row.scores + j), hn::Set(d, row.lse)));
  VF dp = hn::LoadU(d, row.dprobs + j), dropped = p;
  if (row.keep) {
    const VF keep = hn::LoadU(d, row.keep + j);
    dp = hn::Mul(dp, keep);
    dropped = hn::Mul(p, keep);
  }
  return {dropped, hn::Mul(hn::Mul(p, factor), hn::Sub(dp, hn::Set(d, row.delta)))};
}

HWY_INLINE hn::Vec<hn::RebindToUnsigned<F32>> pair_bits(VF even, VF odd) {
  const hn::RebindToUnsigned<F32> du;
  return hn::Or(hn::ShiftRight<16>(bf16_bits(even)), hn::And(bf16_bits(odd), hn::Set(du, 0xffff0000u)));
}

// Rows i (even) and i + 1 of a tile operand, lanes from key j on.
HWY_INLINE void store_rows(const TileOperand<float>& t, std::int64_t i, std::int64_t j, VF even, VF odd) {
  const F32 d;
  hn::StoreU(even, d, t.by_rows + i * kKeyTile + j);
  hn::StoreU(odd, d, t.by_rows + (i + 1) * kKeyTile + j);
}
HWY_INLINE void store_columns(const TileOperand<float>& t, std::int64_t i, std::int64_t j, VF even, VF odd) {
  store_rows(t, i, j, even, odd);
}
HWY_INLINE void store_columns(const TileOperand<Bf16Pair>& t, std::int64_t i, std::int64_t j, VF even, VF odd) {
  const hn::RebindToUnsigned<F32> du;
  hn::StoreU(pair_bits(even, odd), du, reinterpret_cast<std::uint32_t*>(t.by_columns) + i / 2 * kKeyTile + j);
}
HWY_INLINE void store_rows(const TileOperand<Bf16Pair>& t, std::int64_t i, std::int64_t j, VF even, VF odd) {
  const F32 d;
  store_columns(t, i, j, even, odd);
  store(d, even, reinterpret_cast<bf16*>(t.by_rows) + i * kKeyTile + j, Full{});
  store(d, odd, reinterpret_cast<bf16*>(t.by_rows) + (i + 1) * kKeyTile + j, Full{});
}

template <class Unit>
GradRow prepare_row(const AttentionCall& call, const BackwardTile& tile, const BackwardScratch<Unit>& room,
                    std::int64_t i, float* keep) {
  const std::int64_t query = tile.begin + i, count = padded(tile.keys());
  const std::int64_t first = std::clamp<std::int64_t>(call.first_key(tile.b, query) - tile.key_begin, 0, count);
  const std::int64_t last = std::clamp<std::int64_t>(query + 1 - tile.key_begin, 0, count);
  float* scores = room.scores + i * kKeyTile;
  std::fill(scores, scores + first, -std::numeric_limits<float>::infinity());
  std::fill(scores + last, scores + count, -std::numeric_limits<float>::infinity());
  if (keep)
    keep_scales(keep, call.row_keys.as<std::int64_t>()[tile.b * call.s.seq + query],
                call.dropout_column(tile.head, tile.key_begin), count, call.dropout);
  const float lse = call.lse.as<float>()[call.row_begin(tile.b, tile.head) + query];
  return {scores, room.dprobs + i * kKeyTile, keep, lse, room.delta[i]};
}

template <class Unit>
void probs_and_dscores(const AttentionCall& call, const BackwardTile& tile, const BackwardScratch<Unit>& room) {
  const F32 d;
  const std::int64_t count = padded(tile.keys());
  const bool drops = call.dropout.p > 0;
  for (std::int64_t i = 0; i < tile.rows(); i += 2) {
    const GradRow even = prepare_row(call, tile, room, i, drops ? room.keep : nullptr);
    // A missing last row meets zeros in the right operand, so any finite numbers do.
    const GradRow odd =
        i + 1 < tile.rows() ? prepare_row(call, tile, room, i + 1, drops ? room.keep + kKeyTile : nullptr) : even;
    for (std::int64_t j = 0; j < count; j += static_cast<std::int64_t>(hn::Lanes(d))) {
      const ProbAndGrad a = grad_at(d, even, call.s.scale, j), b = grad_at(d, odd, call.s.scale, j);
      store_columns(room.probs, i, j, a.prob, b.prob);
      store_rows(room.dscores, i, j, a.dscore, b.dscore);
    }
  }
}

template <class Unit>
void backward_key_block(const AttentionCall& call, const BackwardTile& tile, const BackwardScratch<Unit>& room) {
  const std::int64_t dim = padded(call.s.head_dim), depth = units<Unit>(call.s.head_dim);
  const std::int64_t rows = tile.rows(), keys = tile.keys();
  tile_product(TileProduct<Unit>{room.scores, kKeyTile, room.q_left, room.width, 1,
                                 room.keys_transposed + tile.key_begin, room.key_stride, rows, padded(keys), depth,
                                 Write::kOverwrite});
  tile_product(TileProduct<Unit>{room.dprobs, kKeyTile, room.dy_left, room.width, 1,
                                 room.values_transposed + tile.key_begin, room.key_stride, rows, padded(keys), depth,
                                 Write::kOverwrite});
  probs_and_dscores(call, tile, room);
  tile_product(TileProduct<Unit>{room.dv + tile.key_begin * dim, dim, room.probs.by_columns, 1, kKeyTile,
                                 room.dy_right, dim, keys, dim, units<Unit>(rows), Write::kAccumulate});
  tile_product(TileProduct<Unit>{room.dk + tile.key_begin * dim, dim, room.dscores.by_columns, 1, kKeyTile,
                                 room.q_right, dim, keys, dim, units<Unit>(rows), Write::kAccumulate});
  tile_product(TileProduct<Unit>{room.dq, dim, room.dscores.by_rows, units<Unit>(kKeyTile), 1,
                                 room.keys + tile.key_begin / kPerUnit<Unit> * dim, dim, rows, dim, units<Unit>(keys),
                                 Write::kAccumulate});
}

// out rows (`stride` apart) = sums rounded to T.
template <class T>
void store_sums(T* out, std::int64_t stride, const float* sums, std::int64_t rows, std::int64_t dim) {
  const F32 d;
  for (std::int64_t i = 0; i < rows; ++i)
    for_vectors(dim, [&](std::int64_t j, auto lanes) HWY_ATTR {
      store(d, hn::LoadU(d, sums + i * padded(dim) + j), out + i * stride + j, lanes);
    });
}

// delta[i] = sum of dy y of row i, which is the sum of p dp over its keys, dropped or not.
template <class T>
void row_deltas(float* delta, const T* dy, const T* y, std::int64_t rows, std::int64_t dim, std::int64_t stride) {
  const F32 d;
  for (std::int64_t i = 0; i < rows; ++i) {
    VF sum = hn::Zero(d);
    for_vectors(dim, [&](std::int64_t j, auto lanes) HWY_ATTR {
      sum = hn::MulAdd(load(d, dy + i * stride + j, lanes), load(d, y + i * stride + j, lanes), sum);
    });
    delta[i] = sum_lanes(d, sum);
  }
}

template <class T, class Unit>
void backward_query_tile(const AttentionCall& call, BackwardTile tile, const BackwardScratch<Unit>& room) {
  const std::int64_t dim = call.s.head_dim, stride = call.qkv_stride(), y_stride = call.y_stride();
  const std::int64_t q_at = call.q_begin(tile.b, tile.head) + tile.begin * stride;
  const std::int64_t y_at = call.y_begin(tile.b, tile.head) + tile.begin * y_stride;
  const T* q = reinterpret_cast<const T*>(call.qkv.data) + q_at;
  const T* dy = reinterpret_cast<const T*>(call.dy.data) + y_at;
  pack_left(room.q_left, room.width, q, tile.rows(), dim, stride);
  pack_right(room.q_right, padded(dim), q, tile.rows(), dim, stride);
  pack_left(room.dy_left, room.width, dy, tile.rows(), dim, y_stride);
  pack_right(room.dy_right, padded(dim), dy, tile.rows(), dim, y_stride);
  row_deltas(room.delta, dy, reinterpret_cast<const T*>(call.y.data) + y_at, tile.rows(), dim, y_stride);
  std::copy(room.delta, room.delta + tile.rows(),
            call.delta.as<float>() + call.row_begin(tile.b, tile.head) + tile.begin);
  std::fill(room.dq, room.dq + tile.rows() * padded(dim), 0.0f);
  const std::int64_t first = call.first_key(tile.b, tile.begin, tile.end) / kTileLanes * kTileLanes;
  for (std::int64_t key = first; key < tile.end; key += kKeyTile) {
    tile.key_begin = key;
    tile.key_end = std::min(key + kKeyTile, tile.end);
    backward_key_block(call, tile, room);
  }
  store_sums(reinterpret_cast<T*>(call.dqkv.data) + q_at, stride, room.dq, tile.rows(), dim);
}

template <class T, class Unit>
void backward(const AttentionCall& call, std::int64_t item, std::byte* scratch) {
  const std::int64_t seq = call.s.seq, dim = call.s.head_dim, stride = call.qkv_stride();
  const std::int64_t b = item / call.s.kv_heads, kv_head = item % call.s.kv_heads;
  const BackwardScratch<Unit> room(Carver(scratch), seq, dim);
  const T* k = reinterpret_cast<const T*>(call.qkv.data) + call.k_begin(b, kv_head);
  const T* v = reinterpret_cast<const T*>(call.qkv.data) + call.v_begin(b, kv_head);
  pack_transposed(room.keys_transposed, room.key_stride, k, seq, dim, stride, room.line);
  pack_transposed(room.values_transposed, room.key_stride, v, seq, dim, stride, room.line);
  pack_right(room.keys, padded(dim), k, seq, dim, stride);
  std::fill(room.dk, room.dk + seq * padded(dim), 0.0f);
  std::fill(room.dv, room.dv + seq * padded(dim), 0.0f);
  for (std::int64_t head = kv_head * call.group(); head < (kv_head + 1) * call.group(); ++head)
    for (std::int64_t begin = 0; begin < seq; begin += kQueryTile)
      backward_query_tile<T>(call, {b, head, begin, std::min(begin + kQueryTile, seq), 0, 0}, room);
  T* dqkv = reinterpret_cast<T*>(call.dqkv.data);
  store_sums(dqkv + call.k_begin(b, kv_head), stride, room.dk, seq, dim);
  store_sums(dqkv + call.v_begin(b, kv_head), stride, room.dv, seq, dim);
}

void backward_dispatch(const AttentionCall& call, Arithmetic arithmetic, std::int64_t item, std::byte* scratch) {
  if (arithmetic == Arithmetic::kBf16Pairs) return backward<bf16, Bf16Pair>(call, item, scratch);
  with_compute_type(call.qkv.dtype,
                    [&](auto type) HWY_ATTR { backward<decltype(type), float>(call, item, scratch); });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(backward_dispatch);

std::size_t backward_scratch_bytes(const AttentionCall& call) {
  return std::max(BackwardScratch<float>(Carver(nullptr), call.s.seq, call.s.head_dim).bytes,
                  BackwardScratch<Bf16Pair>(Carver(nullptr), call.s.seq, call.s.head_dim).bytes);
}

void backward_item(const AttentionCall& call, Arithmetic arithmetic, std::int64_t item, std::byte* scratch) {
  HWY_DYNAMIC_DISPATCH(backward_dispatch)(call, arithmetic, item, scratch);
}

}  // namespace drivetrain::cpu
#endif
