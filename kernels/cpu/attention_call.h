// One attention call as its kernels see it: the tensors of Ops::attention and Ops::attention_grad with the address
// arithmetic of the fused qkv. Work is split into items: one sequence x one kv head with its query heads.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/carver.h"
#include "kernels/ops.h"

namespace drivetrain::cpu {

struct AttentionCall {
  Tensor y, lse, qkv, doc_starts, row_keys;
  Tensor dqkv, delta, dy;  // backward only
  AttentionShape s;
  Dropout dropout;
  std::int64_t head_begin;

  std::int64_t items() const { return s.batch * s.kv_heads; }
  std::int64_t group() const { return s.heads / s.kv_heads; }
  std::int64_t qkv_stride() const { return (s.heads + 2 * s.kv_heads) * s.head_dim; }
  std::int64_t y_stride() const { return s.heads * s.head_dim; }

  // Offsets of the first row of a sequence, in elements.
  std::int64_t q_begin(std::int64_t b, std::int64_t head) const {
    return b * s.seq * qkv_stride() + head * s.head_dim;
  }
  std::int64_t k_begin(std::int64_t b, std::int64_t kv_head) const { return q_begin(b, s.heads + kv_head); }
  std::int64_t v_begin(std::int64_t b, std::int64_t kv_head) const { return k_begin(b, s.kv_heads + kv_head); }
  std::int64_t y_begin(std::int64_t b, std::int64_t head) const { return b * s.seq * y_stride() + head * s.head_dim; }
  std::int64_t row_begin(std::int64_t b, std::int64_t head) const { return (b * s.heads + head) * s.seq; }

  // The first key that query i sees.
  std::int64_t first_key(std::int64_t b, std::int64_t i) const {
    const std::int64_t doc = doc_starts.as<std::int32_t>()[b * s.seq + i];
    return s.window > 0 ? std::max(doc, i - s.window + 1) : doc;
  }
  // The first key that any query of [begin, end) sees.
  std::int64_t first_key(std::int64_t b, std::int64_t begin, std::int64_t end) const {
    std::int64_t first = first_key(b, begin);
    for (std::int64_t i = begin + 1; i < end; ++i) first = std::min(first, first_key(b, i));
    return first;
  }
  std::int64_t dropout_column(std::int64_t head, std::int64_t key) const { return (head_begin + head) * s.seq + key; }
};

// Row stride of transposed keys: an odd number of 64-byte lines, so that rows do not fall into the same cache sets.
constexpr std::int64_t odd_lines(std::int64_t columns) {
  const std::int64_t lines = (columns + 15) / 16;
  return (lines | 1) * 16;
}

// Scratch bytes of one item, and the item itself. kBf16Pairs needs bf16 storage and has_bf16_dot().
enum class Arithmetic { kF32, kBf16Pairs };
std::size_t forward_scratch_bytes(const AttentionCall& call);
std::size_t backward_scratch_bytes(const AttentionCall& call);
void forward_item(const AttentionCall& call, Arithmetic arithmetic, std::int64_t item, std::byte* scratch);
void backward_item(const AttentionCall& call, Arithmetic arithmetic, std::int64_t item, std::byte* scratch);

// Generation: item = sequence x query head; the keys of the cache that it sees; scratch of keys + head_dim floats.
struct KeyRange {
  std::int64_t begin, end;
};
void decode_head(const AttentionCall& call, const Tensor& cache, std::int64_t item, KeyRange range, float* scratch);

}  // namespace drivetrain::cpu
