// How much work a data rank's share of a window is, for telling more work from slower work.
#pragma once
#include <cstdint>

#include "runtime/data/loader.h"

namespace drivetrain {

struct OwnWork {
  std::int64_t tokens = 0;    // without padding
  double length_squares = 0;  // sum over documents of length^2
};
// `seq`: tokens per sequence. A token alone in its document with nothing to predict is padding (dataset.cpp lays it out
// so); a document cut by the end of a sequence counts as two, since attention does not cross the cut.
OwnWork own_work(const StepBatch& window, std::int64_t seq);

}  // namespace drivetrain
