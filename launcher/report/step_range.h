// Small things that the commands on runs share.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace drivetrain {

struct StepRange {
  std::int64_t first = 0, last = INT64_MAX;  // both included
};
// "100:200", "100:", ":200", "100" (that step alone), "" (all). Throws kUsage.
StepRange step_range(const std::string& text);

// Replaces the file, whole or not at all. Throws kIo naming it.
void write_whole_file(const std::filesystem::path& file, const std::string& text);

}  // namespace drivetrain
