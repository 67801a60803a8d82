// The events of a run as a Chrome / Perfetto trace (Trace Event Format, "JSON object"): one process per rank, a thread of
// phases and one or more per axis for collectives, all on the clock of rank 0, with arrows from the rank that came last
// to those that waited for it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/diagnosis/clock_sync.h"

namespace drivetrain {

// Steps in a trace unless the request names others: a viewer stays quick.
constexpr std::int64_t kTraceSteps = 50;

struct TraceRequest {
  std::string run;
  std::int64_t first_step = 0, last_step = INT64_MAX;
  std::filesystem::path file;
};

struct TraceSummary {
  std::int64_t first_step = 0, last_step = 0;
  std::size_t steps = 0, events = 0, arrows = 0;
  std::vector<ClockMap> clocks;      // by rank
  std::vector<std::string> remarks;  // what is not in the trace, and why
  double clock_error_us() const;     // the largest
};

// Writes the file, whole or not at all. Throws kData naming the folder when it has no events of these steps.
TraceSummary write_trace(const TraceRequest& request);

}  // namespace drivetrain
