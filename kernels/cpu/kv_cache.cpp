#include "kernels/cpu/kv_cache.h"

#include <cstring>

#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

namespace drivetrain::cpu {

void kv_store(Tensor cache, Tensor qkv, const AttentionShape& s, std::int64_t begin) {
  const OpCheck check("kv_store");
  check.compute("qkv", qkv);
  const std::int64_t rows = s.batch * s.seq, width = s.kv_heads * s.head_dim;
  const std::int64_t cols = s.heads * s.head_dim + 2 * width;
  check.matrix("qkv", qkv, qkv.dtype, rows, cols);
  check.that(cache.ndim == 4, "cache must be (2, batch, capacity, kv_heads * head_dim)");
  const std::int64_t capacity = cache.dim(2);
  check.matrix("cache", cache, qkv.dtype, 2 * s.batch * capacity, width);
  check.that(begin >= 0 && begin + s.seq <= capacity,
             "positions [" + std::to_string(begin) + ", " + std::to_string(begin + s.seq) +
                 ") do not fit a cache of capacity " + std::to_string(capacity));
  const std::size_t item = size_of(qkv.dtype), width_bytes = static_cast<std::size_t>(width) * item;
  parallel_for(rows, grain_of(2 * width), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t m = first; m < last; ++m) {
      const std::int64_t b = m / s.seq, position = begin + m % s.seq;
      const std::byte* k = qkv.data + static_cast<std::size_t>(m * cols + s.heads * s.head_dim) * item;
      std::byte* keys = cache.data + static_cast<std::size_t>(b * capacity + position) * width_bytes;
      std::byte* values = keys + static_cast<std::size_t>(s.batch * capacity) * width_bytes;
      std::memcpy(keys, k, width_bytes);
      std::memcpy(values, k + width_bytes, width_bytes);
    }
  });
}

}  // namespace drivetrain::cpu
