// A thread that looks at something every so often, until the object goes. It takes no signals.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace drivetrain {

class Watch {
 public:
  // The first look comes one period from now.
  Watch(std::chrono::milliseconds period, std::function<void()> look);
  // Waits for a look that is under way. Not from inside look().
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void run();

  std::chrono::milliseconds period_;
  std::function<void()> look_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace drivetrain
