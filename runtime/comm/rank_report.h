// What can be said of a rank when a collective does not finish: where it runs, whether it still does, what it called last.
// Plain data, so that it can travel between hosts; and the sentence that names who is to blame.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "runtime/comm/flight_recorder.h"

namespace drivetrain {

enum class RankState : std::uint32_t { kRunning, kStopped, kGone, kUnknown, kLeft, kSilent };
const char* name(RankState state);

struct RankReport {
  std::int32_t world_rank = 0;
  std::int32_t pid = 0;
  RankState state = RankState::kUnknown;
  std::array<char, 64> host{};
  FlightEntry newest;        // number 0: no call yet
  FlightGroup group;         // of the newest call; size 0: not known
  std::int64_t idle_ns = 0;  // since the newest call ended, or since it began when it has not

  // "rank 2 (host node1, pid 77, stopped, last call barrier() #12 in group {0, 2} of the world, done 3.2 s ago)"
  std::string describe() const;
  // "barrier() #12 in group {0, 2} of the world, done 3.2 s ago", "none yet"
  std::string last_call() const;
  // Alive and inside a collective: it waits as we do.
  bool waits() const;
};
static_assert(std::is_trivially_copyable_v<RankReport>);

// The report of a rank whose log this is; rank, process, state and host are the caller's to fill in.
RankReport report_of(const FlightLog& log);
// last_call() of that.
std::string describe_newest(const FlightLog& log);

// Who keeps a collective from finishing: the awaited ranks that do not wait themselves, and every rank that is stopped,
// gone or silent; where all of those only wait, the ranks that are in no collective. `awaited` are world ranks. Never
// empty if `awaited` is not.
std::string name_absent(std::span<const int> awaited, std::span<const RankReport> reports);

}  // namespace drivetrain
