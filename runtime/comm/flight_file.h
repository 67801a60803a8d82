// The flight recorders of one host as a file: what every rank there called last, written when something fails and read
// by `drivetrain comm recorder`. Fixed binary records in the byte order of the machine.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/comm/rank_report.h"

namespace drivetrain {

struct FlightRank {
  std::int32_t world_rank = 0, pid = 0;
  RankState state = RankState::kUnknown;  // when the file was written
  std::uint64_t calls = 0;                // since the rank started; the file has the newest
  std::vector<FlightGroup> groups;
  std::vector<FlightEntry> entries;  // oldest first
};

struct FlightFile {
  static constexpr std::uint32_t kVersion = 1;
  std::string host, reason;    // why it was written
  std::int64_t wall_ns = 0;    // when: Unix time
  std::int64_t steady_ns = 0;  // and on the clock of the entries
  std::vector<FlightRank> ranks;
};

// Whole or not at all. Throws kIo.
void write_flight_file(const std::filesystem::path& path, const FlightFile& file);
// Throws kIo when it cannot be read, kData when it is not such a file, of another version, or cut short.
FlightFile read_flight_file(const std::filesystem::path& path);

}  // namespace drivetrain
