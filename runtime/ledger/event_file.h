// ledger/events-00000.bin: phases and collectives of whole steps, for timelines. Every step until the file has 32 MiB;
// from there on only every 2^k-th step, k growing with every 4 MiB more, so that a run of any length has its newest
// steps in it and the file grows with the logarithm of the steps. Ranks keep the same steps but for the moments around
// such a change.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/ledger/append_file.h"

namespace drivetrain {

std::filesystem::path events_path(const std::filesystem::path& ledger_folder, int world_rank);

// When a file keeps only some steps, by the bytes it has.
struct EventBudget {
  std::uintmax_t full_bytes = std::uintmax_t{32} << 20;  // every step until here
  std::uintmax_t more_bytes = std::uintmax_t{4} << 20;   // then half as many steps with every so many more
  std::int64_t stride(std::uintmax_t bytes) const;       // every stride-th step is kept
};

class EventFile {
 public:
  EventFile(const std::filesystem::path& file, const LedgerInfo& info, EventBudget budget = {});
  void keep_until(std::int64_t step);
  // The whole step or nothing of it.
  void append(const StepRecord& record, std::span<const LedgerEvent> events, std::int64_t dropped);

 private:
  AppendFile out_;
  EventBudget budget_;
};

struct StepEvents {
  std::int64_t step = 0, begin_ns = 0, wall_ns = 0;
  std::int64_t dropped = 0;  // events that did not fit into the step's memory
  std::vector<LedgerEvent> events;
};
struct RankEvents {
  LedgerInfo info;
  std::vector<StepEvents> steps;
};
// Steps in [first, last]; a torn last one is dropped. Throws as read_ledger().
RankEvents read_events(const std::filesystem::path& file, std::int64_t first = 0, std::int64_t last = INT64_MAX);

}  // namespace drivetrain
