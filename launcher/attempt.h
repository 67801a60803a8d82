// The folder of one start of a run, runs/<name>/attempt-K: command.txt, events.jsonl, result.json and ranks/.
#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "launcher/cause.h"

namespace drivetrain {

class Attempt {
 public:
  // Makes the first attempt-K that does not exist yet. Throws kIo.
  explicit Attempt(const std::filesystem::path& run_folder);

  const std::filesystem::path& folder() const { return folder_; }  // absolute
  std::filesystem::path rank_folder() const { return folder_ / "ranks"; }

  void write_command(const std::string& text) const;
  // One line of events.jsonl: {"time_ms": ..., "event": name, details...}. Best effort: a full disk does not end a job.
  void event(const std::string& name, const std::map<std::string, std::string>& details) const;
  // result.json, whole or not at all.
  void write_result(const Outcome& outcome, int ranks, std::chrono::milliseconds wall) const;
  // The notes of ranks that gave up, as far as this machine can see them.
  std::vector<RankFailure> failures() const;
  // The last lines of a rank's standard error.
  std::vector<std::string> last_error_lines(int world_rank, std::size_t count) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace drivetrain
