// The calls of one communicator on their way: a queue in the order of calls and a thread that works it off. Whoever
// waits for a call that the thread has not come to yet makes it himself, so a wait never costs a change of threads.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kernels/error.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

class ProgressQueue : public std::enable_shared_from_this<ProgressQueue> {
 public:
  using Call = std::function<Work()>;
  // Is the Work that a call returns over (collectives), or does it wait to be waited for (send)?
  enum class Ends { kOnReturn, kWhenWaitedFor };

  // The thread gets the name (15 letters) and starts with the first push(). wake(reason) makes a call that waits for
  // its peers throw soon, whichever thread it is on.
  ProgressQueue(std::string thread_name, std::function<void(const std::string&)> wake);
  ~ProgressQueue() { close(); }

  // Nothing is queued or running, and nothing went wrong: the caller may use the communicator itself until it pushes.
  bool quiet() const { return quiet_.load(std::memory_order_acquire); }
  // Makes the call after all earlier ones. Throws what an earlier call of the queue threw: nothing follows a failure.
  Work push(Call call, Ends ends);
  // A call that the caller has just made itself, in a quiet moment, and that ends when waited for.
  Work made(Work work);
  // Returns in a quiet moment; throws what a call of the queue threw.
  void drain();
  // Drains, whatever the calls throw, and ends the thread. While an exception is on its way, peers may never come: then
  // calls not begun are dropped, and the one running is woken unless it ends within kGrace.
  void close() noexcept;

 private:
  struct Item {
    Call call;
    Ends ends;
    Work work;
    enum { kQueued, kDone, kFailed } state = kQueued;
  };
  class Handle;
  struct Failure {
    ErrorKind kind;
    std::string reason;
  };
  using Lock = std::unique_lock<std::mutex>;
  static constexpr std::chrono::seconds kGrace{2};

  void serve();
  void make_next_call(Lock& lock);
  void wait_until(Lock& lock, const std::function<bool()>& condition);
  void finish(const Item& item);
  void settle(const Item& item) noexcept;
  void fail(Failure failure);
  void give_up(Lock& lock);
  void check() const;
  bool unwinding() const;

  const std::string name_;
  const std::function<void(const std::string&)> wake_;
  const int exceptions_at_start_;
  std::atomic<bool> quiet_{true};
  std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Item>> queue_;
  bool busy_ = false, closing_ = false;  // busy_: somebody is making a call
  std::optional<Failure> failure_;       // the first one
  std::thread thread_;
};

}  // namespace drivetrain
