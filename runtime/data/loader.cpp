#include "runtime/data/loader.h"

#include <pthread.h>

#include <condition_variable>
#include <csignal>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/data/step_window.h"

namespace drivetrain {
namespace {

// Builds each window when it is asked for.
class DirectLoader final : public Loader {
 public:
  explicit DirectLoader(StepWindow window) : window_(std::move(window)) {}
  StepBatch next() override {
    StepBatch batch = window_.build(cursor_);
    cursor_ = batch.next;
    return batch;
  }
  Cursor cursor() const override { return cursor_; }
  void seek(Cursor cursor) override { cursor_ = window_.checked(cursor); }
  std::int64_t steps_per_epoch() const override { return window_.steps_per_epoch(); }

 private:
  const StepWindow window_;
  Cursor cursor_;
};

// Threads build the windows ahead. Each takes the next cursor that nobody has, so which windows come out, and in which
// order, does not depend on timing. At most depth windows are built or being built beyond the one to be returned.
class PrefetchLoader final : public Loader {
 public:
  PrefetchLoader(StepWindow window, int workers) : window_(std::move(window)), depth_(workers + 1) {
    // Signals are for the thread that runs the step loop.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this](std::stop_token stop) { work(stop); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  StepBatch next() override {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return slots_.contains(head_); });
    const auto slot = slots_.find(head_);
    if (slot->second.error) std::rethrow_exception(slot->second.error);  // stays: the next call fails alike
    StepBatch batch = std::move(slot->second.batch);
    slots_.erase(slot);
    ++head_;
    cursor_ = batch.next;
    lock.unlock();
    room_.notify_one();
    return batch;
  }

  Cursor cursor() const override { return cursor_; }

  void seek(Cursor cursor) override {
    const Cursor to = window_.checked(cursor);
    {
      const std::lock_guard lock(mutex_);
      slots_.clear();
      head_ = taken_;  // windows that are being built now land below head and are dropped
      cursor_ = upcoming_ = to;
    }
    room_.notify_all();
  }

  std::int64_t steps_per_epoch() const override { return window_.steps_per_epoch(); }

 private:
  struct Slot {
    StepBatch batch;
    std::exception_ptr error;
  };

  void work(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (room_.wait(lock, stop, [this] { return taken_ - head_ < depth_; }) && !stop.stop_requested()) {
      const std::int64_t number = taken_++;
      const Cursor cursor = upcoming_;
      upcoming_ = window_.after(cursor);
      lock.unlock();
      Slot slot;
      try {
        slot.batch = window_.build(cursor);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      if (number >= head_) slots_.emplace(number, std::move(slot));
      ready_.notify_one();
    }
  }

  const StepWindow window_;
  const std::int64_t depth_;
  std::mutex mutex_;
  std::condition_variable_any room_;
  std::condition_variable ready_;
  std::map<std::int64_t, Slot> slots_;  // built windows by number
  std::int64_t head_ = 0, taken_ = 0;   // number of the window to be returned; of the next one to be built
  Cursor cursor_, upcoming_;            // the same two as cursors
  std::vector<std::jthread> threads_;   // last: they stop before the rest goes
};

}  // namespace

std::unique_ptr<Loader> make_loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  StepWindow window(std::move(dataset), options);
  const int workers = options.workers < 0 ? 1 : options.workers;
  if (workers == 0) return std::make_unique<DirectLoader>(std::move(window));
  return std::make_unique<PrefetchLoader>(std::move(window), workers);
}

}  // namespace drivetrain
