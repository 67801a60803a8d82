// Weights of a Hugging Face folder under the names of the parameter table, checked against the model.
#pragma once
#include <filesystem>
#include <memory>

#include "models/model_config.h"
#include "runtime/checkpoint/param_io.h"

namespace drivetrain {

// Old exports without the base model's prefix are renamed. A tied model whose file holds a head that differs from the
// embedding is refused (kData): training it as tied would silently drop that head. An identical copy is ignored.
std::unique_ptr<TensorSource> open_model_weights(const std::filesystem::path& folder, const ModelConfig& config);

// Checks every name and shape, then loads values and masters.
void load_model_weights(ParamStore& store, Mesh& mesh, const ModelConfig& config,
                        const std::filesystem::path& folder);

}  // namespace drivetrain
