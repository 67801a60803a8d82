// ledger/rank-00000.bin: a versioned header, then one record of 128 bytes per step. Plain little-endian numbers; the
// reader serves reports and diagnosis.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "runtime/ledger/step_ledger.h"

namespace drivetrain {

constexpr std::uint32_t kLedgerVersion = 1;

class LedgerFile {
 public:
  // Continues an existing file of this rank, else creates it. Throws kIo naming the file.
  LedgerFile(std::filesystem::path file, int world_rank);
  // Drops records of later steps and a torn last one.
  void keep_until(std::int64_t step);
  void append(const StepRecord& record);  // buffered; on disk at the latest when this object goes

 private:
  std::filesystem::path file_;
  std::ofstream out_;
};

struct LedgerContents {
  int world_rank = 0;
  std::vector<StepRecord> records;
};
// Throws kData naming the file when it is not a ledger of this version.
LedgerContents read_ledger(const std::filesystem::path& file);

}  // namespace drivetrain
