// The rules that join several keys of a configuration. Pure; single values are checked where they are read.
#pragma once
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace drivetrain {

struct ConfigFault {
  std::vector<std::string> keys;  // those that disagree; the first one is to blame
  std::string message;
};

std::vector<ConfigFault> check_config(const Config& config);

}  // namespace drivetrain
