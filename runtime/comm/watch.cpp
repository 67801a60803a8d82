#include "runtime/comm/watch.h"

#include <signal.h>

#include <utility>

namespace drivetrain {

Watch::Watch(std::chrono::milliseconds period, std::function<void()> look) : period_(period), look_(std::move(look)) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: signals are for the threads of the program
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period_, [this] { return over_; })) {
    lock.unlock();
    look_();
    lock.lock();
  }
}

}  // namespace drivetrain
