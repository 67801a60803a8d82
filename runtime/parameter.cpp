#include "runtime/parameter.h"

#include <algorithm>

namespace drivetrain {

std::int64_t Parameter::full_rows() const {
  std::int64_t n = 0;
  for (const Block& b : blocks) n += b.rows;
  return n;
}

namespace {

// Room of each rank when `total` is dealt in units.
std::int64_t share(std::int64_t total, std::int64_t unit, int tp) {
  const std::int64_t units = (total + unit - 1) / unit;
  return (units + tp - 1) / tp * unit;
}

}  // namespace

LocalRows local_rows(const Parameter& p, std::size_t block, int tp, int tp_rank) {
  LocalRows out{};
  for (std::size_t i = 0; i <= block; ++i) {
    const Block& b = p.blocks[i];
    out.local_begin += out.padded;
    out.padded = p.split == Split::kRows ? share(b.rows, b.unit, tp) : b.rows;
    out.block_begin = p.split == Split::kRows ? std::min(b.rows, out.padded * tp_rank) : 0;
    out.count = std::min(out.padded, b.rows - out.block_begin);
  }
  return out;
}

LocalCols local_cols(const Parameter& p, int tp, int tp_rank) {
  if (p.split != Split::kCols) return {0, p.cols, p.cols};
  const std::int64_t padded = share(p.cols, p.col_unit, tp), begin = std::min(p.cols, padded * tp_rank);
  return {begin, std::min(padded, p.cols - begin), padded};
}

std::int64_t local_row_count(const Parameter& p, int tp) {
  std::int64_t n = 0;
  for (std::size_t b = 0; b < p.blocks.size(); ++b) n += local_rows(p, b, tp, 0).padded;
  return n;
}

std::int64_t local_col_count(const Parameter& p, int tp) {
  return local_cols(p, tp, 0).padded;
}

}  // namespace drivetrain
