// Stores one YAML value in its place in a Config, or says why it does not fit. Knows one key at a time.
#pragma once
#include <string>

#include "runtime/config/key_table.h"
#include "runtime/config/yaml_tree.h"

namespace drivetrain {

// Returns "" when stored, else the fault without the key's name, e.g. "'fast' is not a number (> 0)". Text is never
// taken for a number by force: quoted text, 1_000, 0x10, 010, .inf and nan are refused.
std::string store_value(const KeyRow& row, const YamlNode& node, Config& config);

}  // namespace drivetrain
