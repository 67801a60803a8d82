#include "runtime/checkpoint/named_tensors.h"

#include <algorithm>
#include <map>
#include <set>

#include "kernels/error.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace drivetrain {
namespace {

const Block& block_of(const NamedTensor::Piece& piece) {
  return piece.parameter->blocks[piece.block];
}

void require_whole(NamedTensor& t) {
  std::sort(t.pieces.begin(), t.pieces.end(),
            [](const auto& a, const auto& b) { return block_of(a).hf_row_begin < block_of(b).hf_row_begin; });
  std::int64_t reached = 0;
  for (const NamedTensor::Piece& piece : t.pieces) {
    if (block_of(piece).hf_row_begin != reached)
      throw Error(ErrorKind::kLogic,
                  "the blocks of " + in_quotes(t.name) + " overlap or leave holes at row " + std::to_string(reached));
    reached += block_of(piece).rows;
  }
  if (reached != t.rows)
    throw Error(ErrorKind::kLogic, "the blocks of " + in_quotes(t.name) + " end at row " + std::to_string(reached) +
                                       " of " + std::to_string(t.rows));
}

}  // namespace

std::vector<std::int64_t> file_shape(const Parameter& p, const Block& block) {
  if (p.vector) return {block.hf_rows};
  if (block.transposed) return {p.cols, block.hf_rows};
  return {block.hf_rows, p.cols};
}

std::vector<NamedTensor> named_tensors(const ParamStore& store) {
  std::vector<NamedTensor> out;
  std::map<std::string, std::size_t> index;
  for (Parameter* p : store.parameters()) {
    for (std::size_t b = 0; b < p->blocks.size(); ++b) {
      const Block& block = p->blocks[b];
      const auto [place, inserted] = index.try_emplace(block.hf_name, out.size());
      if (inserted)
        out.push_back(
            {block.hf_name, file_shape(*p, block), block.hf_rows, p->cols, block.transposed, p->trainable, {}});
      NamedTensor& t = out[place->second];
      if (t.shape != file_shape(*p, block) || t.transposed != block.transposed || t.trainable != p->trainable)
        throw Error(ErrorKind::kLogic,
                    "two blocks describe " + in_quotes(t.name) + " differently, one of them in " + p->name);
      t.pieces.push_back({p, b});
    }
  }
  for (NamedTensor& t : out) require_whole(t);
  return out;
}

std::string tensor_faults(const std::vector<NamedTensor>& wanted, const TensorSource& source,
                          bool (*ignorable)(const std::string& name), const std::string& prefix) {
  std::string faults;
  std::set<std::string> known;
  for (const NamedTensor& t : wanted) {
    known.insert(t.name);
    const std::string what = in_quotes(prefix + t.name);
    const TensorEntry* entry = source.find(t.name);
    if (entry == nullptr)
      faults += "\n  missing: " + what + " " + shape_text(t.shape);
    else if (entry->shape != t.shape)
      faults += "\n  wrong shape: " + what + " is " + shape_text(entry->shape) + " in " + source.where(t.name) +
                ", the model needs " + shape_text(t.shape);
  }
  for (const std::string& name : source.names()) {
    if (!known.contains(name) && !ignorable(name))
      faults += "\n  unknown: " + in_quotes(prefix + name) + " " + shape_text(source.find(name)->shape) + " in " +
                source.where(name) + " belongs to no parameter of the model";
  }
  return faults;
}

}  // namespace drivetrain
