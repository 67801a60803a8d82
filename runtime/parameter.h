// One row of the parameter table. The table drives initialisation, loading, export, clipping, sharded optimizer
// state, checkpoint resharding and the memory plan; a row says everything about one trained matrix or vector.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace drivetrain {

// Which dimension of the full matrix is cut over the tensor ranks.
enum class Split { kNone, kRows, kCols };

// A run of full rows of the parameter that is cut over the tensor ranks by itself: in a fused q|k|v matrix each of
// the three blocks gives every rank its share. A block is also the unit of naming in files.
struct Block {
  std::int64_t rows = 0;          // logical rows, without padding (1 row for vectors with Split::kNone, see below)
  std::string hf_name;            // Hugging Face tensor that holds it
  std::int64_t hf_row_begin = 0;  // first row inside that tensor (after transposing, when transposed)
  std::int64_t hf_rows = 0;       // rows of that whole tensor
  bool transposed = false;        // stored [in, out] (GPT-2 Conv1D)
  std::int64_t unit = 1;          // rows are dealt in multiples of it: a head is never cut
};

// Full shape: matrix (sum of block rows, cols); vectors have cols == 1 and count as matrices of one column, so that
// Split::kRows cuts them and Split::kNone replicates them. hf_vector: the file's tensor is one-dimensional.
struct Parameter {
  enum class Init { kNormal, kOnes, kZeros };

  std::string name;  // ours: "layers.3.attn.qkv.weight"
  std::vector<Block> blocks;
  std::int64_t cols = 1;
  std::int64_t col_unit = 1;  // like Block::unit, for Split::kCols
  bool vector = false;
  Split split = Split::kNone;
  // Replicated over tensor ranks, but each rank's gradient is only a part (norms under sequence parallelism):
  // summed over tp once per step.
  bool tp_partial = false;
  bool decay = true;
  bool trainable = true;
  Init init = Init::kNormal;
  float init_std = 0.02f;

  // Set by ParamStore::materialize. Local shapes: (local_rows, local_cols), vectors (local_rows).
  Tensor value;                 // compute dtype
  Tensor grad;                  // f32; absent when not trainable
  std::int64_t flat_begin = 0;  // element offset in the store's flat buffers

  std::int64_t full_rows() const;
};

// The part of a block that tensor rank `tp_rank` of `tp` holds: logical rows [begin, begin + count) of the block, at
// local rows [local_begin, ...). Every rank reserves room for ceil(units / tp) units and the first ranks are filled, so the
// last ones may hold fewer: the local matrix then has padding (zero, never read from or written to files). Padding is
// inert: a zero row of one matrix meets a zero column of the next, so its gradient is zero too.
struct LocalRows {
  std::int64_t block_begin;  // first logical row inside the block
  std::int64_t count;        // logical rows held here
  std::int64_t local_begin;  // first local row
  std::int64_t padded;       // local rows reserved for the block (>= count)
};
LocalRows local_rows(const Parameter& p, std::size_t block, int tp, int tp_rank);
// The columns that a tensor rank holds: [begin, begin + count), at local columns [0, count) of `padded`.
struct LocalCols {
  std::int64_t begin, count, padded;
};
LocalCols local_cols(const Parameter& p, int tp, int tp_rank);
std::int64_t local_row_count(const Parameter& p, int tp);  // of the whole parameter, padding included
std::int64_t local_col_count(const Parameter& p, int tp);
inline std::int64_t local_count(const Parameter& p, int tp) {
  return local_row_count(p, tp) * local_col_count(p, tp);
}

}  // namespace drivetrain
