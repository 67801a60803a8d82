// The parameter table seen from the files: which Hugging Face tensors it makes up, and out of which blocks. Holds no
// values.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/param_store.h"

namespace drivetrain {

struct NamedTensor {
  struct Piece {
    Parameter* parameter;
    std::size_t block;
  };

  std::string name;
  std::vector<std::int64_t> shape;  // as in the file: [rows], [rows, cols] or, transposed, [cols, rows]
  std::int64_t rows = 0, cols = 1;  // in the parameter's orientation
  bool transposed = false;
  bool trainable = true;
  std::vector<Piece> pieces;  // by first row; together exactly the rows

  std::int64_t count() const { return rows * cols; }
};

// In the order of the store. Throws kLogic where blocks of one tensor contradict each other, overlap or leave holes.
std::vector<NamedTensor> named_tensors(const ParamStore& store);
// Shape in the file of the tensor that holds this block.
std::vector<std::int64_t> file_shape(const Parameter& p, const Block& block);
// One line for each tensor that the source lacks, has in another shape, or has although it is neither wanted nor
// ignorable; empty when all is well. `prefix` stands in front of the names shown.
std::string tensor_faults(const std::vector<NamedTensor>& wanted, const TensorSource& source,
                          bool (*ignorable)(const std::string& name), const std::string& prefix);

}  // namespace drivetrain
