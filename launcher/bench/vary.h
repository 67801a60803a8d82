// --vary key=v1,v2: one change of the configuration at a time, each against the baseline.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace drivetrain {

// In the order of the words; commas inside brackets, braces and quotes belong to a value. Throws kUsage for what is not
// KEY=VALUE,..., for unknown keys naming the nearest one, for keys that the bench sets itself, for keys of the data while
// the data are made up, and for a change that is asked for twice.
std::vector<ConfigOverride> parse_vary(const std::vector<std::string>& words, bool real_data);

}  // namespace drivetrain
