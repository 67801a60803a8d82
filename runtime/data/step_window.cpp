#include "runtime/data/step_window.h"

#include <algorithm>

#include "kernels/error.h"
#include "kernels/ops.h"

namespace drivetrain {
namespace {

std::int64_t checked_size(const std::shared_ptr<const Dataset>& dataset) {
  if (!dataset || dataset->size() < 1) throw Error(ErrorKind::kData, "the dataset has no samples");
  return dataset->size();
}

}  // namespace

StepWindow::StepWindow(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options), order_(checked_size(dataset_), options.seed, options.shuffle) {
  if (options.micro < 1 || options.dp < 1 || options.dp_rank < 0 || options.dp_rank >= options.dp) {
    throw Error(ErrorKind::kLogic, "loader: micro " + std::to_string(options.micro) + ", data rank " +
                                       std::to_string(options.dp_rank) + " of " + std::to_string(options.dp));
  }
  const std::int64_t slice = options.micro * options.dp;
  if (options.global < slice || options.global % slice != 0) {
    throw Error(ErrorKind::kConfig, "batch.global: " + std::to_string(options.global) + ": must be a multiple of " +
                                        std::to_string(slice) + " (batch.micro " + std::to_string(options.micro) +
                                        " x " + std::to_string(options.dp) + " data ranks)");
  }
}

Cursor StepWindow::checked(Cursor cursor) const {
  const std::int64_t size = dataset_->size();
  if (cursor.epoch < 0 || cursor.position < 0 || cursor.position > size) {
    throw Error(ErrorKind::kData, "data cursor: epoch " + std::to_string(cursor.epoch) + ", position " +
                                      std::to_string(cursor.position) + " is outside a dataset of " +
                                      std::to_string(size) +
                                      " samples; is this the data the checkpoint was made with?");
  }
  return cursor.position == size ? Cursor{cursor.epoch + 1, 0} : cursor;
}

Cursor StepWindow::after(Cursor cursor) const {
  return checked({cursor.epoch, std::min(cursor.position + options_.global, dataset_->size())});
}

std::int64_t StepWindow::steps_per_epoch() const {
  return (dataset_->size() + options_.global - 1) / options_.global;
}

StepBatch StepWindow::build(Cursor cursor) const {
  const std::int64_t slice = options_.micro * options_.dp;
  StepBatch step;
  step.next = after(cursor);
  step.samples = std::min(options_.global, dataset_->size() - cursor.position);
  for (std::int64_t i = 0; i < step.samples; ++i) {
    step.window_target_count += dataset_->target_count(order_.at(cursor.epoch, cursor.position + i));
  }
  for (std::int64_t begin = 0; begin < step.samples; begin += slice) {
    step.micro.push_back(micro_batch(cursor, begin + options_.dp_rank * options_.micro, step.samples, step));
    step.target_count += step.micro.back().target_count;
  }
  return step;
}

HostBatch StepWindow::micro_batch(Cursor cursor, std::int64_t first, std::int64_t samples, StepBatch& step) const {
  const std::int64_t length = dataset_->seq_len();
  const auto count = static_cast<std::size_t>(options_.micro * length);
  HostBatch batch;
  batch.ids.assign(count, 0);
  batch.targets.assign(count, Ops::kIgnore);
  batch.positions.assign(count, 0);
  batch.doc_starts.assign(count, 0);
  batch.row_keys.assign(count, 0);
  for (std::int64_t row = 0; row < options_.micro; ++row) {
    const auto at = static_cast<std::size_t>(row * length), n = static_cast<std::size_t>(length);
    const auto slice = [&](std::vector<std::int32_t>& all) { return std::span(all).subspan(at, n); };
    if (first + row >= samples) {  // beyond a short window: every token alone, nothing to predict
      for (std::size_t t = 0; t < n; ++t) batch.doc_starts[at + t] = static_cast<std::int32_t>(t);
      continue;
    }
    const std::int64_t index = order_.at(cursor.epoch, cursor.position + first + row);
    dataset_->read(index, {slice(batch.ids), slice(batch.targets), slice(batch.positions), slice(batch.doc_starts)});
    const std::int64_t key = (cursor.epoch * dataset_->size() + index) * length;
    for (std::size_t t = 0; t < n; ++t) batch.row_keys[at + t] = key + static_cast<std::int64_t>(t);
    batch.target_count += dataset_->target_count(index);
    step.sample_ids.push_back(index);
  }
  return batch;
}

}  // namespace drivetrain
