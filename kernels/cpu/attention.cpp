#include "kernels/cpu/attention.h"

#include "kernels/cpu/attention_call.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

namespace drivetrain::cpu {

namespace {

void check_shape(const OpCheck& check, const AttentionShape& s) {
  check.that(s.batch >= 0 && s.seq >= 0 && s.head_dim > 0 && s.kv_heads > 0 && s.heads > 0,
             "batch and seq are not negative, heads and head_dim are positive");
  check.that(s.heads % s.kv_heads == 0, "kv_heads divides heads");
  check.that(s.scale > 0 && s.window >= 0, "scale is positive, window is not negative");
}

void check_inputs(const OpCheck& check, const AttentionCall& call) {
  const AttentionShape& s = call.s;
  check_shape(check, s);
  const DType dtype = call.qkv.dtype;
  const std::int64_t tokens = s.batch * s.seq;
  check.compute("qkv", call.qkv);
  check.matrix("qkv", call.qkv, dtype, tokens, call.qkv_stride());
  check.matrix("y", call.y, dtype, tokens, call.y_stride());
  check.flat("lse", call.lse, DType::kF32, s.batch * s.heads * s.seq);
  check.flat("doc_starts", call.doc_starts, DType::kI32, tokens);
  if (call.dropout.p > 0) check.flat("row_keys", call.row_keys, DType::kI64, tokens);
  check.that(call.dropout.p >= 0 && call.dropout.p < 1, "dropout lies in [0, 1)");
  const std::int32_t* starts = call.doc_starts.as<std::int32_t>();
  for (std::int64_t m = 0; m < tokens; ++m)
    check.that(starts[m] >= 0 && starts[m] <= m % s.seq, "a document starts at or before its token");
}

Arithmetic arithmetic_of(DType dtype) {
  return dtype == DType::kBF16 && has_bf16_dot() ? Arithmetic::kBf16Pairs : Arithmetic::kF32;
}

// Runs every item, each thread with its own `bytes` of scratch.
template <class Item>
void for_items(const AttentionCall& call, Scratch& scratch, std::size_t bytes, Item&& item) {
  if (call.s.seq == 0) return;
  const std::size_t share = (bytes + HostPool::kAlignment - 1) / HostPool::kAlignment * HostPool::kAlignment;
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), call.items());
  std::byte* memory = scratch.need(share * static_cast<std::size_t>(std::max<std::int64_t>(threads, 1)));
  const Arithmetic arithmetic = arithmetic_of(call.qkv.dtype);
  parallel_for(call.items(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::byte* mine = memory + share * static_cast<std::size_t>(omp_get_thread_num());
    for (std::int64_t i = begin; i < end; ++i) item(call, arithmetic, i, mine);
  });
}

}  // namespace

void Attention::forward(Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts, Tensor row_keys, const AttentionShape& s,
                        Dropout dropout, std::int64_t head_begin) {
  const AttentionCall call{y, lse, qkv, doc_starts, row_keys, {}, {}, {}, s, dropout, head_begin};
  check_inputs(OpCheck("attention"), call);
  for_items(call, scratch_, forward_scratch_bytes(call), forward_item);
}

void Attention::backward(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts,
                         Tensor row_keys, const AttentionShape& s, Dropout dropout, std::int64_t head_begin) {
  const AttentionCall call{y, lse, qkv, doc_starts, row_keys, dqkv, delta, dy, s, dropout, head_begin};
  const OpCheck check("attention_grad");
  check_inputs(check, call);
  check.matrix("dqkv", dqkv, qkv.dtype, s.batch * s.seq, call.qkv_stride());
  check.matrix("dy", dy, qkv.dtype, s.batch * s.seq, call.y_stride());
  check.flat("delta", delta, DType::kF32, s.batch * s.heads * s.seq);
  for_items(call, scratch_, backward_scratch_bytes(call), backward_item);
}

void Attention::decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape& s, std::int64_t position) {
  const OpCheck check("attention_decode");
  check_shape(check, s);
  const AttentionCall call{y, {}, qkv, {}, {}, {}, {}, {}, s, {}, 0};
  check.compute("qkv", qkv);
  check.that(s.seq == 1, "one new token per sequence");
  check.matrix("qkv", qkv, qkv.dtype, s.batch, call.qkv_stride());
  check.matrix("y", y, qkv.dtype, s.batch, call.y_stride());
  check.that(cache.ndim == 4 && cache.dim(0) == 2 && cache.dim(1) == s.batch, "the cache is (2, B, capacity, Hkv D)");
  check.matrix("cache", cache, qkv.dtype, 2 * s.batch * cache.dim(2), s.kv_heads * s.head_dim);
  check.that(position >= 0 && position < cache.dim(2), "the position lies inside the cache");
  const std::int64_t first = s.window > 0 ? std::max<std::int64_t>(0, position - s.window + 1) : 0;
  const std::int64_t keys = position + 1 - first, room = (keys + s.head_dim + 31) / 16 * 16;
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), s.batch * s.heads);
  auto* memory = reinterpret_cast<float*>(
      scratch_.need(static_cast<std::size_t>(room * std::max<std::int64_t>(threads, 1)) * sizeof(float)));
  parallel_for(s.batch * s.heads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      decode_head(call, cache, i, {first, position + 1}, memory + room * omp_get_thread_num());
  });
}

}  // namespace drivetrain::cpu
