// Does a checkpoint belong to this model? Shapes alone do not tell: heads, rotary bases and epsilons leave them alone.
#pragma once
#include <filesystem>

#include "models/model_config.h"

namespace drivetrain {

// Compares with the config.json in the checkpoint's manifest. Throws kConfig naming each field that differs and both
// values. What may change between runs (dropout, initialisation) is not compared.
void check_checkpoint_model(const std::filesystem::path& checkpoint, const ModelConfig& model);
// Warns of newer step folders beside `chosen` (may be empty: none was) that are not complete.
void warn_of_incomplete(const std::filesystem::path& checkpoints, const std::filesystem::path& chosen);

}  // namespace drivetrain
