// Reads what mpirun (Open MPI 4.1) writes on stderr: separates its own words from those of rank 0, and finds in them which
// process failed first and why. Pure text.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace drivetrain {

struct EngineVerdict {
  enum class Kind { kRankFailed, kLaunchFailed, kNodeLost };
  Kind kind = Kind::kRankFailed;
  int world_rank = -1;  // kRankFailed
  int exit_code = 0;    // kRankFailed: of the rank, 128 + n for signal n
  std::string host;     // when mpirun names it
  std::string reason;   // "exit 7", "killed by signal 9 (Killed)", ...
};

class EngineText {
 public:
  // Takes the next bytes; returns those that are for the console (whole lines).
  std::string feed(const std::string& bytes);
  // What is left when the stream has ended, for the console.
  std::string finish();

  // The first verdict found so far.
  const std::optional<EngineVerdict>& verdict() const { return verdict_; }
  // The last lines outside mpirun's framed messages, for a failure that has no better words.
  const std::vector<std::string>& last_lines() const { return last_lines_; }

 private:
  std::string take_line(const std::string& line);
  std::string close_block();

  std::string partial_;
  bool in_block_ = false;
  std::string block_;  // the inside of a framed message
  std::optional<EngineVerdict> verdict_;
  std::vector<std::string> last_lines_;
};

}  // namespace drivetrain
