#include "runtime/comm/blocking_deadline.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/comm/process_info.h"
#include "runtime/comm/world.h"

namespace drivetrain {

BlockingDeadline::BlockingDeadline(std::string what, std::chrono::milliseconds limit, std::string key,
                                   LastWords last_words)
    : what_(std::move(what)),
      key_(std::move(key)),
      limit_(limit),
      last_words_(std::move(last_words)),
      watch_(limit, [this] { expire(); }) {}

void BlockingDeadline::expire() {
  const ProcessPlace place = process_place();
  const Error error(
      ErrorKind::kHang,
      what_ + " did not finish within its deadline of " + std::to_string(limit_.count()) + " ms: rank " +
          std::to_string(place.world_rank) + " of " + std::to_string(place.world_size) + " (host " + host_name() +
          ", pid " + std::to_string(getpid()) + ") is in " + phase_.load() +
          ", which waits for all ranks. Look for the ranks that say nothing, and at the network between "
          "hosts; raise " +
          key_ + " if this is expected");
  if (last_words_) {
    last_words_(error);
  } else {
    std::fprintf(stderr, "drivetrain: %s\n", error.what());
    std::fflush(stderr);
  }
  std::_Exit(error.exit_code());
}

}  // namespace drivetrain
