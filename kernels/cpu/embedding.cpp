#include "kernels/cpu/embedding.h"

#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/op_check.h"
#include "kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/embedding.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace drivetrain::cpu::HWY_NAMESPACE {

// y[i] += x[i].
template <class To, class From>
HWY_INLINE void accumulate(To* y, const From* x, std::int64_t n) {
  const F32 d;
  for_vectors(n, [&](std::int64_t i, auto lanes)
                     HWY_ATTR { store(d, hn::Add(load(d, y + i, lanes), load(d, x + i, lanes)), y + i, lanes); });
}

// Adds the table's rows to tokens [begin, end).
void embedding_add_rows(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, std::int64_t begin,
                        std::int64_t end) {
  const std::int64_t cols = table.dim(1);
  with_compute_type(y.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t m = begin; m < end; ++m) {
      const std::int64_t id = *row<std::int32_t>(ids, m, 1) - vocab_begin;
      if (id >= 0 && id < table.dim(0)) accumulate(row<T>(y, m, cols), row<T>(table, id, cols), cols);
    }
  });
}

// Columns [begin, end) of every token, in token order, so that threads never meet and the sum has one order.
void embedding_grad_columns(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, std::int64_t begin,
                            std::int64_t end) {
  const std::int64_t cols = dtable.dim(1), rows = ids.count();
  with_compute_type(dy.dtype, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    for (std::int64_t m = 0; m < rows; ++m) {
      const std::int64_t id = *row<std::int32_t>(ids, m, 1) - vocab_begin;
      if (id < 0 || id >= dtable.dim(0)) continue;
      accumulate(row<float>(dtable, id, cols) + begin, row<T>(dy, m, cols) + begin, end - begin);
    }
  });
}

}  // namespace drivetrain::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace drivetrain::cpu {

HWY_EXPORT(embedding_add_rows);
HWY_EXPORT(embedding_grad_columns);

namespace {

void copy_rows(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, std::int64_t begin, std::int64_t end) {
  const std::size_t row_bytes = static_cast<std::size_t>(table.dim(1)) * size_of(table.dtype);
  const std::int32_t* id_of = ids.as<std::int32_t>();
  for (std::int64_t m = begin; m < end; ++m) {
    const std::int64_t id = id_of[m] - vocab_begin;
    std::byte* out = y.data + static_cast<std::size_t>(m) * row_bytes;
    if (id >= 0 && id < table.dim(0)) {
      std::memcpy(out, table.data + static_cast<std::size_t>(id) * row_bytes, row_bytes);
    } else {
      std::memset(out, 0, row_bytes);
    }
  }
}

}  // namespace

void embedding(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, Write write) {
  const OpCheck check("embedding");
  check.compute("y", y);
  check.that(table.ndim == 2, "table must be (vocabulary, width)");
  const std::int64_t rows = ids.count(), cols = table.dim(1);
  check.matrix("table", table, y.dtype, table.dim(0), cols);
  check.flat("ids", ids, DType::kI32, rows);
  check.matrix("y", y, y.dtype, rows, cols);
  parallel_for(rows, grain_of(cols), [&](std::int64_t begin, std::int64_t end) {
    if (write == Write::kOverwrite) {
      copy_rows(y, ids, table, vocab_begin, begin, end);
    } else {
      HWY_DYNAMIC_DISPATCH(embedding_add_rows)(y, ids, table, vocab_begin, begin, end);
    }
  });
}

void embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, Write write) {
  const OpCheck check("embedding_grad");
  check.compute("dy", dy);
  check.that(dtable.ndim == 2, "dtable must be (vocabulary, width)");
  const std::int64_t rows = ids.count(), cols = dtable.dim(1);
  check.matrix("dtable", dtable, DType::kF32, dtable.dim(0), cols);
  check.flat("ids", ids, DType::kI32, rows);
  check.matrix("dy", dy, dy.dtype, rows, cols);
  if (write == Write::kOverwrite) zero(dtable);
  constexpr std::int64_t kUnit = 64;
  parallel_for((cols + kUnit - 1) / kUnit, grain_of(kUnit * rows), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(embedding_grad_columns)
    (dtable, ids, dy, vocab_begin, begin * kUnit, std::min(cols, end * kUnit));
  });
}

}  // namespace drivetrain::cpu
#endif
