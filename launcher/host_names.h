// The grammar of host names and Slurm's host lists, "n[1-3,07]-ib,m". Pure text.
#pragma once
#include <string>
#include <vector>

namespace drivetrain {

// Cuts at commas that are outside brackets; empty pieces stay, so that they can be reported.
std::vector<std::string> split_outside_brackets(const std::string& text);

}  // namespace drivetrain
