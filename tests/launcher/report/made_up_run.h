// A run folder on paper: ledger, events and metrics of a synthetic job, as the recorder of a real one leaves them.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "runtime/ledger/ledger_info.h"
#include "tests/runtime/diagnosis/synthetic_job.h"

namespace drivetrain {

struct MadeUpRun {
  SyntheticJob job = {};
  std::vector<std::string> hosts = {};  // by rank; empty: all on "node1"
  double offset_us = 0, drift = 0;      // of rank 1's clock against rank 0's
  double noise_us = 0;                  // a rank notices the end of a collective later by up to this
  std::vector<int> absent = {};         // ranks whose files are not there
  int exit_code = 0;
  std::string reason = {};  // of a failure, by rank 1
};

// A folder that goes with the object.
class MadeUpFolder {
 public:
  explicit MadeUpFolder(const MadeUpRun& run);
  ~MadeUpFolder();
  MadeUpFolder(const MadeUpFolder&) = delete;
  MadeUpFolder& operator=(const MadeUpFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string text_of_file(const std::filesystem::path& file);

}  // namespace drivetrain
