#include "runtime/checkpoint/param_io.h"

#include <algorithm>

#include "kernels/error.h"
#include "runtime/checkpoint/named_tensors.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace drivetrain {
namespace {

// The stored tensor has the parameter's rows as its rows.
void read_rows(const Block& block, const LocalRows& rows, const LocalCols& columns, std::int64_t full_cols,
               const TensorSource& source, std::span<float> out) {
  const std::int64_t first = block.hf_row_begin + rows.block_begin;
  if (columns.count == full_cols && columns.padded == full_cols)
    return source.read(block.hf_name, first * full_cols, out);
  const auto width = static_cast<std::size_t>(columns.padded);
  for (std::int64_t r = 0; r < rows.count; ++r)
    source.read(block.hf_name, (first + r) * full_cols + columns.begin,
                out.subspan(static_cast<std::size_t>(r) * width, static_cast<std::size_t>(columns.count)));
}

// The stored tensor has the parameter's columns as its rows: strips of columns are read and turned.
void read_turned(const Block& block, const LocalRows& rows, const LocalCols& columns, const TensorSource& source,
                 std::span<float> out) {
  constexpr std::int64_t kStrip = 16;
  const std::int64_t first = block.hf_row_begin + rows.block_begin;
  const auto height = static_cast<std::size_t>(rows.count), width = static_cast<std::size_t>(columns.padded);
  std::vector<float> strip(static_cast<std::size_t>(kStrip) * height);
  for (std::int64_t c = 0; c < columns.count; c += kStrip) {
    const auto n = static_cast<std::size_t>(std::min(kStrip, columns.count - c));
    for (std::size_t i = 0; i < n; ++i)
      source.read(block.hf_name, (columns.begin + c + static_cast<std::int64_t>(i)) * block.hf_rows + first,
                  std::span(strip).subspan(i * height, height));
    for (std::size_t r = 0; r < height; ++r)
      for (std::size_t i = 0; i < n; ++i) out[r * width + static_cast<std::size_t>(c) + i] = strip[i * height + r];
  }
}

void require_shape(const Parameter& p, const Block& block, const TensorSource& source) {
  const TensorEntry* entry = source.find(block.hf_name);
  const std::vector<std::int64_t> wanted = file_shape(p, block);
  if (entry == nullptr)
    throw Error(ErrorKind::kData, "the tensor " + in_quotes(block.hf_name) + " of shape " + shape_text(wanted) +
                                      " is missing (needed for " + p.name + ")");
  if (entry->shape != wanted)
    throw Error(ErrorKind::kData, source.where(block.hf_name) + ": the tensor " + in_quotes(block.hf_name) +
                                      " has shape " + shape_text(entry->shape) + ", the model needs " +
                                      shape_text(wanted));
}

}  // namespace

void read_local(const Parameter& p, const TensorSource& source, int tp, int tp_rank, std::span<float> local) {
  if (static_cast<std::int64_t>(local.size()) != local_count(p, tp))
    throw Error(ErrorKind::kLogic, p.name + ": " + std::to_string(local.size()) +
                                       " elements to fill, the local part has " + std::to_string(local_count(p, tp)));
  const LocalCols columns = local_cols(p, tp, tp_rank);
  const auto width = static_cast<std::size_t>(columns.padded);
  for (std::size_t b = 0; b < p.blocks.size(); ++b) {
    const Block& block = p.blocks[b];
    require_shape(p, block, source);
    const LocalRows rows = local_rows(p, b, tp, tp_rank);
    const auto count = static_cast<std::size_t>(rows.count);
    const auto out = local.subspan(static_cast<std::size_t>(rows.local_begin) * width,
                                   static_cast<std::size_t>(rows.padded) * width);
    const bool padded_columns = columns.count < columns.padded;
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(padded_columns ? 0 : count * width), out.end(), 0.0f);
    if (count == 0 || columns.count == 0) continue;
    if (block.transposed)
      read_turned(block, rows, columns, source, out.first(count * width));
    else
      read_rows(block, rows, columns, p.cols, source, out.first(count * width));
    source.release(block.hf_name);
  }
}

void check_tensors(const ParamStore& store, const TensorSource& source, bool (*ignorable)(const std::string& name)) {
  const std::string faults = tensor_faults(named_tensors(store), source, ignorable, "");
  if (!faults.empty()) throw Error(ErrorKind::kData, "the weights do not fit the model:" + faults);
}

std::vector<FullTensor> full_tensors(const ParamStore& store) {
  std::vector<FullTensor> out;
  for (NamedTensor& t : named_tensors(store)) out.push_back({std::move(t.name), std::move(t.shape)});
  return out;
}

}  // namespace drivetrain
