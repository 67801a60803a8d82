// The feed test: how fast data come when nothing is computed. Windows are received and uploaded as the trainer does it.
#pragma once
#include <cstdint>
#include <string>

#include "kernels/device.h"
#include "runtime/data/loader.h"

namespace drivetrain {

struct FeedShape {
  std::int64_t micro = 1, seq = 0;                  // sequences and tokens of a micro-batch
  std::int64_t warmup = 0, steps = 1;               // windows; those that the loader has ready are no measurement
  double least_s = 0.2;                             // goes on until so much time has passed
  std::int64_t most_steps = std::int64_t{1} << 16;  // ... or so many windows
};
// Windows a second of this rank. Goes on where the loader stands.
double measure_feed(Loader& loader, Device& device, const FeedShape& shape);

// Whether the data side bounds training: both in tokens a second.
struct FeedVerdict {
  enum class Limit { kData, kNear, kCompute };
  double feed = 0, training = 0;
  double ratio() const { return training > 0 ? feed / training : 0; }
  // Training cannot outrun its feed; within a tenth of it, the feed is what it waits for. Below twice the rate, workers
  // that share cores with the computation may not keep up.
  Limit limit() const;
  std::string sentence() const;
};
const char* name(FeedVerdict::Limit limit);  // "data", "near", "compute"

}  // namespace drivetrain
