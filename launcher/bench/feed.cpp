#include "launcher/bench/feed.h"

#include <algorithm>
#include <chrono>

#include "runtime/batch_buffer.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {

double measure_feed(Loader& loader, Device& device, const FeedShape& shape) {
  using Clock = std::chrono::steady_clock;
  BatchBuffer buffer(device, shape.micro, shape.seq);
  const auto receive = [&] {
    const StepBatch window = loader.next();
    for (const HostBatch& batch : window.micro) buffer.upload(batch);
    device.synchronize();
  };
  for (std::int64_t i = 0; i < shape.warmup; ++i) receive();
  const Clock::time_point begin = Clock::now();
  double seconds = 0;
  std::int64_t windows = 0;
  while (windows < shape.steps || (seconds < shape.least_s && windows < shape.most_steps)) {
    receive();
    ++windows;
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return static_cast<double>(windows) / std::max(seconds, 1e-9);
}

FeedVerdict::Limit FeedVerdict::limit() const {
  constexpr double kSame = 1.1, kRoom = 2;
  return ratio() < kSame ? Limit::kData : ratio() < kRoom ? Limit::kNear : Limit::kCompute;
}

std::string FeedVerdict::sentence() const {
  const std::string times = fixed(ratio(), ratio() < 10 ? 2 : 0) + " x the training rate: ";
  switch (limit()) {
    case Limit::kData:
      return times + "the data side is the limit; raise data.workers or move the data to a faster disk";
    case Limit::kNear:
      return times + "the data side is near the limit: workers that share cores may not keep up";
    case Limit::kCompute:
      break;
  }
  return times + "the data side is not the limit";
}

const char* name(FeedVerdict::Limit limit) {
  return limit == FeedVerdict::Limit::kData ? "data" : limit == FeedVerdict::Limit::kNear ? "near" : "compute";
}

}  // namespace drivetrain
