#include "runtime/checkpoint/tensor_gather.h"

#include <algorithm>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 20;  // elements sent at a time

std::int64_t rows_per_chunk(std::int64_t cols) {
  return std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(1, cols));
}

}  // namespace

std::span<const float> TensorGather::gather(const NamedTensor& t, Tensor shards, int owner) {
  const int tp = mesh_.shape().tp;
  const bool here = mesh_.world().rank() == owner;
  const Parameter& first = *t.pieces.front().parameter;
  const bool one_run = t.pieces.size() == 1 && !t.transposed && (tp == 1 || first.split == Split::kNone);
  if (one_run) {
    fetch_local(first, shards);
    return here ? local_rows_of(part_of(t.pieces.front(), mesh_.tp_rank())) : std::span<const float>();
  }
  if (here) full_.resize(static_cast<std::size_t>(t.count()));
  for (const NamedTensor::Piece& piece : t.pieces) {
    fetch_local(*piece.parameter, shards);
    if (mesh_.dp_rank() == owner / tp) collect(t, piece, owner % tp);
  }
  return here ? std::span<const float>(full_) : std::span<const float>();
}

void TensorGather::fetch_local(const Parameter& p, Tensor shards) {
  if (fetched_ == &p && fetched_shards_ == shards.data) return;
  local_.resize(static_cast<std::size_t>(local_count(p, mesh_.shape().tp)));
  if (shards.present())
    store_.gather_shards(p, shards, local_);
  else
    store_.read_master(p, local_);
  fetched_ = &p;
  fetched_shards_ = shards.data;
}

TensorGather::Part TensorGather::part_of(const NamedTensor::Piece& piece, int tp_rank) const {
  const Parameter& p = *piece.parameter;
  const int tp = mesh_.shape().tp;
  const LocalRows rows = local_rows(p, piece.block, tp, tp_rank);
  const LocalCols cols = local_cols(p, tp, tp_rank);
  return {p.blocks[piece.block].hf_row_begin + rows.block_begin,
          rows.count,
          rows.local_begin,
          cols.begin,
          cols.count,
          cols.padded};
}

std::span<const float> TensorGather::local_rows_of(const Part& part) const {
  return std::span<const float>(local_).subspan(static_cast<std::size_t>(part.local_begin * part.width),
                                                static_cast<std::size_t>(part.rows * part.width));
}

// Inside the owner's tensor group: its own part is placed, the others are received one after another.
void TensorGather::collect(const NamedTensor& t, const NamedTensor::Piece& piece, int owner_tp_rank) {
  const int tp = mesh_.shape().tp, me = mesh_.tp_rank();
  const bool replicated = piece.parameter->split == Split::kNone;
  for (int r = 0; r < tp; ++r) {
    const Part part = part_of(piece, r);
    if (r == owner_tp_rank) {
      if (me == r) place(t, part, 0, local_rows_of(part));
    } else if (!replicated && me == r) {
      send_part(part, owner_tp_rank);
    } else if (!replicated && me == owner_tp_rank) {
      receive_part(t, part, r);
    }
  }
}

void TensorGather::send_part(const Part& part, int to) {
  const std::span<const float> values = local_rows_of(part);
  const auto step = static_cast<std::size_t>(rows_per_chunk(part.width) * part.width);
  for (std::size_t at = 0; at < values.size(); at += step) {
    const auto chunk = values.subspan(at, std::min(step, values.size() - at));
    const Tensor staged = staging(static_cast<std::int64_t>(chunk.size()));
    store_.device().upload(staged, std::as_bytes(chunk));
    mesh_.tp().send(staged, to).wait();
  }
}

void TensorGather::receive_part(const NamedTensor& t, const Part& part, int from) {
  const std::int64_t step = rows_per_chunk(part.width);
  std::vector<float> chunk;
  for (std::int64_t row = 0; row < part.rows; row += step) {
    chunk.resize(static_cast<std::size_t>(std::min(step, part.rows - row) * part.width));
    const Tensor staged = staging(static_cast<std::int64_t>(chunk.size()));
    mesh_.tp().recv(staged, from).wait();
    store_.device().download(std::as_writable_bytes(std::span(chunk)), staged);
    place(t, part, row, chunk);
  }
}

void TensorGather::place(const NamedTensor& t, const Part& part, std::int64_t skip_rows,
                         std::span<const float> values) {
  const std::int64_t rows = part.width == 0 ? 0 : static_cast<std::int64_t>(values.size()) / part.width;
  const auto width = static_cast<std::size_t>(part.width), cols = static_cast<std::size_t>(part.cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t row = part.first_row + skip_rows + r;
    const auto source = values.subspan(static_cast<std::size_t>(r) * width, cols);
    if (t.transposed) {
      for (std::size_t c = 0; c < cols; ++c)
        full_[static_cast<std::size_t>((part.first_col + static_cast<std::int64_t>(c)) * t.rows + row)] = source[c];
    } else {
      std::copy(source.begin(), source.end(), full_.begin() + row * t.cols + part.first_col);
    }
  }
}

Tensor TensorGather::staging(std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  if (staging_.bytes() < bytes) staging_ = Buffer(store_.device(), bytes);
  return staging_.tensor(DType::kF32).flat(0, count);
}

}  // namespace drivetrain
