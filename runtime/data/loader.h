// Deals the samples of each optimizer step to data ranks and micro-batches, and prepares them ahead of time on its own
// threads. Its cursor does not depend on the layout.
//
// Step window: `global` consecutive positions of the epoch's order. Micro-batch m of data rank d holds positions
// m * (dp * micro) + d * micro + [0, micro) of the window. The last window of an epoch may be short (it is kept): rows
// beyond it are filled with ignored targets, so every rank runs the same number of micro-batches.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/data/dataset.h"

namespace drivetrain {

struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t position = 0;  // first sample of the next window, in the epoch's order
};

struct HostBatch {  // one micro-batch, (micro, T) each
  std::vector<std::int32_t> ids, targets, positions, doc_starts;
  std::vector<std::int64_t> row_keys;  // (epoch * size + sample index) * T + t
  std::int64_t target_count = 0;
};

struct StepBatch {                       // all that one data rank does in one optimizer step
  std::vector<HostBatch> micro;          // as many as accumulation needs; fewer in a short window
  std::int64_t samples = 0;              // real samples of the whole window, over all data ranks
  std::int64_t target_count = 0;         // of this data rank
  std::int64_t window_target_count = 0;  // of the whole window, over all data ranks (every rank can count it)
  Cursor next;                           // cursor after this step
  std::vector<std::int64_t> sample_ids;  // this rank's real samples, in order; for logs and tests
};

struct LoaderOptions {
  std::int64_t global, micro;
  int dp, dp_rank;
  std::uint64_t seed;
  bool shuffle;
  // Threads that prepare batches; 0: on demand, -1: one. One also serves a rank that is pinned to a single core: it
  // works a few microseconds a step, and while it waits for the disk the core computes.
  int workers;
};

class Loader {
 public:
  virtual ~Loader() = default;
  virtual StepBatch next() = 0;
  virtual Cursor cursor() const = 0;  // of the next window to be returned
  virtual void seek(Cursor cursor) = 0;
  virtual std::int64_t steps_per_epoch() const = 0;  // short window included
};
std::unique_ptr<Loader> make_loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

}  // namespace drivetrain
