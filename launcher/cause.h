// Who is to blame: joins what mpirun says with the notes of ranks that gave up by themselves. Pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "launcher/engine_text.h"
#include "launcher/rank_files.h"

namespace drivetrain {

struct Outcome {
  int exit_code = 0;
  int engine_exit_code = 0;  // what mpirun returned
  int world_rank = -1;       // of the cause; -1: no single rank
  std::string host;
  std::string reason;        // "" when all went well
  std::string text() const;  // "rank 1 on node2 (exit 7)", "" when all went well
};

struct Evidence {
  int engine_exit_code = 0;
  std::optional<EngineVerdict> verdict;
  std::vector<std::string> last_lines;  // of mpirun, when it has no verdict
  std::vector<RankFailure> notes;
  std::vector<std::string> rank_host;  // by world rank
};

// A rank that failed by itself comes before one that only lost a peer; the earliest first. Then what mpirun saw first.
// mpirun's own failures are 11 (not started) or 13 (a host was lost).
Outcome judge(const Evidence& evidence);

}  // namespace drivetrain
