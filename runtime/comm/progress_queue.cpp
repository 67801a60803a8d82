#include "runtime/comm/progress_queue.h"

#include <pthread.h>

#include <exception>
#include <new>

#include "kernels/cpu/parallel.h"

namespace drivetrain {

// What callers hold. Letting the last copy go before the call is over waits for it: the memory may go next.
class ProgressQueue::Handle final : public Work::State {
 public:
  Handle(std::shared_ptr<ProgressQueue> queue, std::shared_ptr<Item> item)
      : queue_(std::move(queue)), item_(std::move(item)) {}
  ~Handle() override { queue_->settle(*item_); }

  void wait() override {
    queue_->finish(*item_);
    if (item_->ends == Ends::kOnReturn) return;
    // Everything called before this wait would be over if every call blocked: a program that is right then is right now.
    queue_->drain();
    item_->work.wait();
  }
  CollectiveTiming timing() const override {
    const Lock lock(queue_->mutex_);
    return item_->state == Item::kDone ? item_->work.timing() : CollectiveTiming{};
  }

 private:
  std::shared_ptr<ProgressQueue> queue_;
  std::shared_ptr<Item> item_;
};

ProgressQueue::ProgressQueue(std::string thread_name, std::function<void(const std::string&)> wake)
    : name_(std::move(thread_name)), wake_(std::move(wake)), exceptions_at_start_(std::uncaught_exceptions()) {}

Work ProgressQueue::push(Call call, Ends ends) {
  const auto item = std::make_shared<Item>(Item{std::move(call), ends, {}});
  {
    const Lock lock(mutex_);
    check();
    if (!thread_.joinable()) thread_ = std::thread([this] { serve(); });
    queue_.push_back(item);
    quiet_.store(false, std::memory_order_relaxed);
  }
  changed_.notify_all();
  return Work(std::make_shared<Handle>(shared_from_this(), item));
}

Work ProgressQueue::made(Work work) {
  const auto item = std::make_shared<Item>(Item{{}, Ends::kWhenWaitedFor, std::move(work), Item::kDone});
  return Work(std::make_shared<Handle>(shared_from_this(), item));
}

void ProgressQueue::serve() {
  pthread_setname_np(pthread_self(), name_.c_str());
  cpu::use_threads(1);  // the other cores are computing
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closing_ || (!queue_.empty() && !busy_); });
    if (closing_) return;
    make_next_call(lock);
  }
}

void ProgressQueue::make_next_call(Lock& lock) {
  const std::shared_ptr<Item> item = std::move(queue_.front());
  queue_.pop_front();
  busy_ = true;
  lock.unlock();
  std::optional<Failure> failure;
  try {
    item->work = item->call();
  } catch (const Error& e) {
    failure = Failure{e.kind(), e.what()};
  } catch (const std::bad_alloc&) {
    failure = Failure{ErrorKind::kMemory, "out of memory in a collective"};
  } catch (const std::exception& e) {
    failure = Failure{ErrorKind::kComm, e.what()};
  }
  lock.lock();
  busy_ = false;
  item->state = failure ? Item::kFailed : Item::kDone;
  if (failure) fail(std::move(*failure));
  quiet_.store(queue_.empty() && !failure_, std::memory_order_release);
  changed_.notify_all();
}

void ProgressQueue::wait_until(Lock& lock, const std::function<bool()>& condition) {
  while (!condition()) {
    if (!busy_ && !queue_.empty())
      make_next_call(lock);
    else
      changed_.wait(lock);
  }
}

void ProgressQueue::finish(const Item& item) {
  Lock lock(mutex_);
  wait_until(lock, [&] { return item.state != Item::kQueued; });
  if (item.state == Item::kFailed) check();
}

void ProgressQueue::drain() {
  if (quiet()) return;
  Lock lock(mutex_);
  wait_until(lock, [this] { return queue_.empty() && !busy_; });
  check();
}

void ProgressQueue::settle(const Item& item) noexcept {
  Lock lock(mutex_);
  if (item.state != Item::kQueued) return;
  if (unwinding()) return give_up(lock);
  wait_until(lock, [&] { return item.state != Item::kQueued; });
}

void ProgressQueue::close() noexcept {
  Lock lock(mutex_);
  if (unwinding()) give_up(lock);
  wait_until(lock, [this] { return queue_.empty() && !busy_; });
  closing_ = true;
  lock.unlock();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressQueue::fail(Failure failure) {
  if (!failure_) failure_ = std::move(failure);
  for (const auto& item : queue_) item->state = Item::kFailed;
  queue_.clear();
}

void ProgressQueue::give_up(Lock& lock) {
  if (queue_.empty() && !busy_) return;
  const std::string reason = "an exception left the code that waits for collectives in flight";
  fail({ErrorKind::kComm, reason});
  quiet_.store(false, std::memory_order_relaxed);
  const auto idle = [this] { return !busy_; };
  if (changed_.wait_for(lock, kGrace, idle)) return;
  lock.unlock();
  wake_(reason);
  lock.lock();
  changed_.wait(lock, idle);
}

void ProgressQueue::check() const {
  if (failure_) throw Error(failure_->kind, failure_->reason);
}

bool ProgressQueue::unwinding() const {
  return std::uncaught_exceptions() > exceptions_at_start_;
}

}  // namespace drivetrain
