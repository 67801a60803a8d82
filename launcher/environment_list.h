// Which environment variables travel to the ranks, by policy and by --env. Names only ever appear on a command line.
#pragma once
#include <string>
#include <vector>

#include "launcher/hosts.h"

namespace drivetrain {

// Travels without being asked: PATH, LD_LIBRARY_PATH, and what tunes libraries (NCCL_*, OMP_*, ...).
bool is_passed_on(const std::string& name);
// Looks like a key or a password, by its name.
bool is_secret(const std::string& name);

// "K=V" is that value, which may be empty and hold '='; "K" is the value in `own`. The last of equal names wins. Throws
// kUsage with every fault: names that are no variable, a bare K that is not set.
Environment parse_environment_options(const std::vector<std::string>& options, const Environment& own);

}  // namespace drivetrain
