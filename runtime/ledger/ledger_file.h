// ledger/rank-00000.bin: a header that says who wrote it, then one StepRecord per step, as it lies in memory. A running
// or killed job leaves a file that reads well: only a last record that is cut short is dropped.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "runtime/ledger/append_file.h"

namespace drivetrain {

std::filesystem::path ledger_path(const std::filesystem::path& ledger_folder, int world_rank);

class LedgerFile {
 public:
  // Continues an existing file of this rank, else creates it. Throws kIo naming the file.
  LedgerFile(const std::filesystem::path& file, const LedgerInfo& info);
  // Drops records of later steps and a torn last one; the header becomes that of this process.
  void keep_until(std::int64_t step);
  void append(const StepRecord& record);  // in the file within a second of steps, at the latest when this object goes

 private:
  AppendFile out_;
};

struct RankLedger {
  LedgerInfo info;
  std::vector<StepRecord> records;
};
// `last`: only so many of the newest records; 0: all. Throws kIo when the file cannot be read, kData naming it when it
// is not a ledger of this version.
RankLedger read_ledger(const std::filesystem::path& file, std::int64_t last = 0);

// All ranks of a run folder (or of its ledger folder), by world rank. Files of ranks beyond the world of rank 0 are
// left from an earlier layout and not read; others may be missing when hosts do not share the folder. Throws kData
// when there is none of rank 0.
std::vector<RankLedger> read_run_ledger(const std::filesystem::path& run_folder, std::int64_t last = 0);

}  // namespace drivetrain
