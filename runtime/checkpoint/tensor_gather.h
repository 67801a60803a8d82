// Puts full tensors together, in the orientation of the file, on the rank that will write each. Memory: the largest
// tensor on its writer, the largest local part elsewhere, and a few MiB.
#pragma once
#include <span>
#include <vector>

#include "kernels/buffer.h"
#include "runtime/checkpoint/named_tensors.h"
#include "runtime/mesh.h"
#include "runtime/param_store.h"

namespace drivetrain {

class TensorGather {
 public:
  TensorGather(ParamStore& store, Mesh& mesh) : store_(store), mesh_(mesh) {}

  // Collective over the world. `shards`: an owned-slice buffer of the store, or absent for the masters. On world rank
  // `owner` the result holds t.count() elements until the next call; elsewhere it is empty.
  std::span<const float> gather(const NamedTensor& t, Tensor shards, int owner);

 private:
  // What a tensor rank holds of a piece: rows of the full tensor, columns, and where they lie in its local part.
  struct Part {
    std::int64_t first_row, rows, local_begin;
    std::int64_t first_col, cols, width;  // width: columns of the local part, padding included
  };
  Part part_of(const NamedTensor::Piece& piece, int tp_rank) const;
  void fetch_local(const Parameter& p, Tensor shards);
  std::span<const float> local_rows_of(const Part& part) const;
  void collect(const NamedTensor& t, const NamedTensor::Piece& piece, int owner_tp_rank);
  void send_part(const Part& part, int to);
  void receive_part(const NamedTensor& t, const Part& part, int from);
  void place(const NamedTensor& t, const Part& part, std::int64_t skip_rows, std::span<const float> values);
  Tensor staging(std::int64_t count);

  ParamStore& store_;
  Mesh& mesh_;
  const Parameter* fetched_ = nullptr;  // local_ holds this parameter's part of these shards
  const std::byte* fetched_shards_ = nullptr;
  std::vector<float> local_, full_;
  Buffer staging_;
};

}  // namespace drivetrain
