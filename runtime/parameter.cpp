#include "runtime/parameter.h"

#include <algorithm>

namespace drivetrain {

std::int64_t Parameter::full_rows() const {
  std::int64_t n = 0;
  for (const Block& b : blocks) n += b.rows;
  return n;
}

LocalRows local_rows(const Parameter& p, std::size_t block, int tp, int tp_rank) {
  LocalRows out{};
  for (std::size_t i = 0; i <= block; ++i) {
    const std::int64_t rows = p.blocks[i].rows;
    out.local_begin += out.padded;
    out.padded = p.split == Split::kRows ? (rows + tp - 1) / tp : rows;
    out.block_begin = p.split == Split::kRows ? std::min(rows, out.padded * tp_rank) : 0;
    out.count = std::min(out.padded, rows - out.block_begin);
  }
  return out;
}

std::int64_t local_row_count(const Parameter& p, int tp) {
  std::int64_t n = 0;
  for (const Block& b : p.blocks) n += p.split == Split::kRows ? (b.rows + tp - 1) / tp : b.rows;
  return n;
}

std::int64_t local_col_count(const Parameter& p, int tp) {
  return p.split == Split::kCols ? p.cols / tp : p.cols;
}

}  // namespace drivetrain
