// The flight recorder: the latest collectives of every rank, in memory that the peers on the host can read when the rank
// is stopped or gone. One cache line and about 20 ns a call. Knows nothing of waiting or files (flight_file.h).
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/call_record.h"

namespace drivetrain {

inline constexpr std::size_t kFlightEntries = 1024;  // per rank; a power of two
// What a group records: a part of a larger communicator leaves its steps, or everything, to that one.
enum class Recording { kAll, kMessages, kNothing };

inline constexpr std::size_t kFlightGroups = 64;  // names kept per rank, the newest

enum class FlightTransport : std::uint8_t { kThreads, kShm, kMpi, kHierarchical };
const char* name(FlightTransport transport);

// One collective, in memory and in a recorder file alike. Times are of the host's steady clock, 0: not (yet) known.
struct FlightEntry {
  std::uint32_t number = 0;  // of the call on its rank, from 1, modulo 2^32
  CollectiveOp op = CollectiveOp::kNone;
  DType dtype = DType::kU8;
  std::uint8_t reduce = 0;  // ReduceOp
  FlightTransport transport = FlightTransport::kShm;
  std::uint64_t sequence = 0;  // of the call in its group, from 1
  std::int64_t count = 0;      // as in CallRecord
  std::int64_t arrival_ns = 0, last_arrival_ns = 0, end_ns = 0;
  std::int64_t bytes = 0;  // known at the end
  std::uint32_t group = 0;
  std::int32_t root = -1;

  bool finished() const { return end_ns != 0; }
  CallRecord call() const;
};
static_assert(sizeof(FlightEntry) == 64);

struct FlightGroup {
  std::uint32_t id = 0;
  std::int32_t size = 0;        // members; 0: no group
  std::array<char, 56> text{};  // "group {0, 2} of the world", cut to fit
};
static_assert(sizeof(FlightGroup) == 64);

// What lies in shared memory, one per rank; all zero is empty.
struct FlightLog {
  struct Line {
    alignas(64) std::array<std::atomic<std::uint64_t>, 8> words;
  };
  alignas(64) std::atomic<std::uint64_t> calls;   // begun so far
  alignas(64) std::atomic<std::uint64_t> groups;  // named so far
  std::array<Line, kFlightGroups> group_names;
  std::array<Line, kFlightEntries> entries;
};

// Writes the calls of one rank. Any thread of the rank; readers may look at any time.
class FlightRecorder {
 public:
  explicit FlightRecorder(FlightLog& log) : log_(log) {}

  void name_group(std::uint32_t id, int size, const std::string& text);
  // The call begins; call.flight is what end() knows it by.
  void begin(std::uint32_t group, CallRecord& call, FlightTransport transport);
  void end(const CallRecord& call, std::int64_t last_arrival_ns, std::int64_t end_ns, std::int64_t bytes);
  const FlightLog& log() const { return log_; }

 private:
  FlightLog& log_;
};

// What a log holds, oldest first; calls that are being overwritten while they are read are left out.
std::vector<FlightEntry> flight_entries(const FlightLog& log);
std::vector<FlightGroup> flight_groups(const FlightLog& log);
std::optional<FlightEntry> newest_flight_entry(const FlightLog& log);

}  // namespace drivetrain
