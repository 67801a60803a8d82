// Builds what one data rank does in one optimizer step: a pure function of the cursor. No threads, no state.
#pragma once
#include <memory>

#include "runtime/data/loader.h"

namespace drivetrain {

class StepWindow {
 public:
  // Throws kConfig when global is not a multiple of dp * micro, kData when the dataset is empty.
  StepWindow(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

  // The cursor with a position inside its epoch: the end of one epoch is the start of the next. Throws kData outside.
  Cursor checked(Cursor cursor) const;
  Cursor after(Cursor cursor) const;
  StepBatch build(Cursor cursor) const;
  std::int64_t steps_per_epoch() const;

 private:
  HostBatch micro_batch(Cursor cursor, std::int64_t first, std::int64_t samples, StepBatch& step) const;

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  const SampleOrder order_;
};

}  // namespace drivetrain
