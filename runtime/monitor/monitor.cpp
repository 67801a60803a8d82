#include "runtime/monitor/monitor.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "kernels/error.h"
#include "runtime/log.h"
#include "runtime/signals_held.h"

namespace drivetrain {
namespace {

constexpr std::int64_t kRareEvery = 10;  // samples: links and neighbours cost the most to read
constexpr double kBusyDevice = 50;       // percent of utilisation from which a device keeps its links at full speed

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

Monitor::Monitor(MonitorSources sources, const MonitorOptions& options)
    : sources_(std::move(sources)), options_(options), process_(sources_.root), out_(options.file, std::ios::app) {
  if (!out_)
    throw Error(ErrorKind::kIo, "cannot write " + options.file.string() + ": check the folder and its permissions");
  if (sources_.links) {
    host_.emplace(sources_.root);
    neighbours_.emplace(sources_.root);
  }
  write(to_line(sources_.facts));
  const SignalsHeld held;
  thread_ = std::thread([this] { run(); });
}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

MonitorSample Monitor::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

void Monitor::run() noexcept {
  try {
    auto next = std::chrono::steady_clock::now();
    const auto period =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options_.every_s));
    for (bool last = false;;) {
      const double begin_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
      take();
      cost_ms_ = (seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin_s) * 1e3;
      if (last) return;
      next = std::max(next + period, std::chrono::steady_clock::now());  // a late sample does not make a burst
      std::unique_lock lock(mutex_);
      last = wake_.wait_until(lock, next, [this] { return stopping_; });
    }
  } catch (const std::exception& error) {
    log_warn("the monitor stopped, training goes on: " + std::string(error.what()));
  }
}

void Monitor::take() {
  MonitorSample now;
  now.time_s = seconds_of(CLOCK_REALTIME);
  const double steady_s = seconds_of(CLOCK_MONOTONIC);
  now.clock_ns = static_cast<std::int64_t>(steady_s * 1e9);
  now.cost_ms = cost_ms_;
  now.process = process_.sample(steady_s);
  if (host_) now.host = host_->sample(steady_s);
  if (sources_.devices) now.devices = sources_.devices->sample();
  const bool rare = taken_++ % kRareEvery == 0;
  if (neighbours_ && rare) now.neighbours = neighbours_->scan(steady_s);
  write(to_line(now));
  if (sources_.links && rare) take_links(now);
  const std::lock_guard lock(mutex_);
  latest_ = std::move(now);
}

void Monitor::take_links(const MonitorSample& now) {
  const bool busy = std::any_of(now.devices.begin(), now.devices.end(), [](const DeviceSample& device) {
    return device.utilization.value_or(0) >= kBusyDevice;
  });
  LinkSample sample{0, 0, busy, sources_.links->inspect()};
  for (const std::string& fault : link_faults(sample.report, {}, busy))
    if (said_faults_.insert(fault).second) log_warn(fault);
  const std::string state = to_line(sample);
  if (state == last_links_) return;
  last_links_ = state;
  sample.time_s = now.time_s;
  sample.clock_ns = now.clock_ns;
  write(to_line(sample));
}

void Monitor::write(const std::string& line) {
  if (!writable_) return;
  out_ << line << '\n' << std::flush;
  writable_ = out_.good();
  if (!writable_) log_warn("cannot write " + options_.file.string() + ": is the disk full? No more samples are kept");
}

}  // namespace drivetrain
