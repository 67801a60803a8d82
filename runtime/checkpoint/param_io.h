// Between the parameter table and named tensors: cuts what a rank needs out of full tensors, and puts full tensors
// together from what the ranks hold. Collective calls say so.
#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/mesh.h"
#include "runtime/param_store.h"

namespace drivetrain {

// Fills `local` (local_count elements, padding rows zero) of p for this tensor rank from the tensors its blocks name.
void read_local(const Parameter& p, const TensorSource& source, int tp, int tp_rank, std::span<float> local);
// Checks that every tensor the table names is there with the right shape and that no unknown weight tensor remains
// (`ignorable` decides); throws one kData error that lists all of them.
void check_tensors(const ParamStore& store, const TensorSource& source, bool (*ignorable)(const std::string& name));
// Loads all values and masters from the source.
void load_values(ParamStore& store, Mesh& mesh, const TensorSource& source);

// Full tensors (Hugging Face names and orientation, no padding) of the store, for export and checkpoints.
struct FullTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};
std::vector<FullTensor> full_tensors(const ParamStore& store);
// Writes the model as model.safetensors into `folder` (rank 0 of the world writes). Collective over the world.
void export_weights(ParamStore& store, Mesh& mesh, const std::filesystem::path& folder, FileDType dtype);

}  // namespace drivetrain
