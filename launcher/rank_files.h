// The files a rank leaves in runs/<name>/attempt-K/ranks, as rank-exec, a failing rank and the launcher agree on them.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace drivetrain {

inline constexpr const char* kRankFolderVariable = "DRIVETRAIN_RANK_DIR";  // set by launch on every rank
// The job's token, in the environment of every process of the job, by which launch finds what a job left behind.
inline constexpr const char* kJobVariable = "DRIVETRAIN_JOB";
// Columns of the terminal of launch, 0 when its output is not one. (Open MPI gives each rank a pseudo terminal.)
inline constexpr const char* kTerminalVariable = "DRIVETRAIN_TERMINAL";

// rank-00003.out: suffix "out".
std::filesystem::path rank_file(const std::filesystem::path& folder, int world_rank, const std::string& suffix);

// Why a rank gave up by itself.
struct RankFailure {
  int world_rank = 0;
  std::string host, phase, kind, message;
  int exit_code = 0;
  std::int64_t time_ms = 0;  // Unix time
};
// Best effort: a rank that cannot write its note still fails with its own code.
void write_rank_failure(const std::filesystem::path& folder, const RankFailure& failure) noexcept;
// Nothing when there is none or it is not whole.
std::optional<RankFailure> read_rank_failure(const std::filesystem::path& file);

}  // namespace drivetrain
