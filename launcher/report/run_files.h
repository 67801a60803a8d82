// Reads what a report needs from a run folder, as far as it is there.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/report/run_report.h"
#include "runtime/diagnosis/window.h"
#include "runtime/ledger/ledger_file.h"

namespace drivetrain {

// Rows of all ranks that can be read, cut to the steps that all of them have.
struct RunRows {
  std::vector<RankLedger> ledgers;
  Window window;                    // views into ledgers; dp and tp 1 x ranks when some are missing
  std::vector<std::string> limits;  // what is missing, in words
  bool complete = false;            // every rank of the world is there
};
// Without steps in the request: the newest kReportSteps. Throws kData naming the folder when there is no ledger, and the
// steps that there are when the request has none of them.
RunRows read_rows(const ReportRequest& request);

// metrics.jsonl thinned to at most `most` rows, evaluations kept; empty when there is none. Foreign lines are skipped.
std::vector<CurvePoint> read_curve(const std::filesystem::path& run_folder, std::size_t most);

// From the config.yaml that the run wrote; nothing when it is absent or of another version.
RunFacts read_facts(const std::filesystem::path& run_folder);

// Events of one step of all ranks; empty when some rank has none.
Timeline read_timeline(const RunRows& rows, const std::filesystem::path& run_folder, std::int64_t step);

// Steps of the window that rank 0 has events of, the longest first; evaluation and checkpoints do not count.
std::vector<std::int64_t> steps_with_events(const RunRows& rows, const std::filesystem::path& run_folder);

}  // namespace drivetrain
