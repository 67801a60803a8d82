// Whom a waiting rank really waits for: from group to group, to the first rank whose lateness is its own work.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/diagnosis/window.h"

namespace drivetrain {

struct BlameStep {
  int rank = -1;  // that waits
  CommAxis axis = CommAxis::kWorld;
  int culprit = -1;     // whom it names
  double waits_ms = 0;  // per step, in that axis
};

// Begins at `from`, in the axis where it waits most, and follows the ranks named as last. Stops at a rank that waited
// less than half as long as it was waited for: the rest is its own work. Rows of the chosen steps only (all when empty).
// Empty when `from` names nobody.
std::vector<BlameStep> blame_path(const Window& window, int from, std::span<const std::size_t> steps = {});

// "rank 1 waits 41.0 ms in the dp gradient reduction <- rank 3 came late <- its tp peer rank 2 came late <- `end`"
std::string to_text(std::span<const BlameStep> path, const std::string& end);

// What ranks do in an axis, in words.
const char* meeting_place(CommAxis axis);

}  // namespace drivetrain
