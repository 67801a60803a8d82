#include "launcher/report/run_end.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "kernels/error.h"
#include "launcher/process.h"
#include "launcher/rank_files.h"
#include "launcher/recorder_report.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

// Evaluations and checkpoints take long too: only this many usual steps without one is a hang.
constexpr double kHungSteps = 20, kHungSeconds = 10;
constexpr std::size_t kMostRanksTold = 16;

std::optional<fs::path> newest_attempt(const fs::path& run) {
  for (int number = 0;; ++number)
    if (!fs::is_directory(run / ("attempt-" + std::to_string(number))))
      return number > 0 ? std::optional(run / ("attempt-" + std::to_string(number - 1))) : std::nullopt;
}

// Rank 0 holds the lock for as long as it lives (run_lock.h).
bool is_locked(const fs::path& run) {
  const FileDescriptor file(open((run / "lock").c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// "R (running)" of /proc/PID/status in words; where the kernel shows it, also what a sleeper waits in.
std::string process_words(pid_t pid) {
  const fs::path proc = "/proc/" + std::to_string(pid);
  std::istringstream status(text_of(proc / "status"));
  std::string state = "of unknown state";
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("State:")) state = line.substr(line.find_first_not_of(" \t", 6));
  const std::string where = text_of(proc / "wchan");
  return "state " + state + (where.empty() || where == "0" ? "" : ", in the kernel's " + where);
}

std::string variable(pid_t pid, const std::string& name) {
  const std::string environment = text_of("/proc/" + std::to_string(pid) + "/environ");
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    const char* entry = environment.c_str() + at;
    if (std::strncmp(entry, (name + "=").c_str(), name.size() + 1) == 0) return entry + name.size() + 1;
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return "";
}

struct LivingRank {
  int rank;
  pid_t pid;
  std::string words;
};
// Ranks of the attempt that live on this machine, by rank.
std::vector<LivingRank> living_ranks(const fs::path& attempt) {
  std::vector<LivingRank> living;
  for (const pid_t pid : processes_with(kRankFolderVariable, fs::absolute(attempt / "ranks").string())) {
    const std::string rank = variable(pid, "OMPI_COMM_WORLD_RANK");
    if (rank.empty() || rank.find_first_not_of("0123456789") != std::string::npos) continue;
    living.push_back({std::stoi(rank), pid, process_words(pid)});
  }
  std::sort(living.begin(), living.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return living;
}

void tell_living(const fs::path& attempt, RunEnd& end) {
  std::vector<LivingRank> living = living_ranks(attempt);
  std::string stopped;
  // A stopped or frozen rank first: the others wait for it.
  const auto is_stopped = [](const LivingRank& one) {
    return one.words.starts_with("state T") || one.words.starts_with("state t") || one.words.starts_with("state D");
  };
  std::stable_partition(living.begin(), living.end(), is_stopped);
  for (const LivingRank& one : living) {
    const std::string text =
        "rank " + std::to_string(one.rank) + ": process " + std::to_string(one.pid) + ", " + one.words;
    if (is_stopped(one) && stopped.empty()) stopped = text;
    if (end.account.size() < kMostRanksTold) end.account.push_back(text);
  }
  if (!stopped.empty()) end.cause += "; " + stopped;
}

std::vector<RankFailure> failures_in(const fs::path& attempt) {
  std::vector<RankFailure> notes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt / "ranks", error))
    if (entry.path().extension() == ".failure")
      if (const auto note = read_rank_failure(entry.path())) notes.push_back(*note);
  std::sort(notes.begin(), notes.end(), [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
  return notes;
}

void tell_failures(const fs::path& attempt, RunEnd& end) {
  const std::vector<RankFailure> notes = failures_in(attempt);
  for (const RankFailure& note : notes) {
    if (end.account.size() >= kMostRanksTold) break;
    end.account.push_back("rank " + std::to_string(note.world_rank) + " on " + note.host + ", " +
                          fixed(static_cast<double>(note.time_ms - notes.front().time_ms) * 1e-3, 1) +
                          " s after the first, in '" + note.phase + "': " + note.message);
  }
}

// What the flight recorders of all hosts show: who is behind, and the first call in which ranks differ.
void tell_recorders(const fs::path& attempt, RunEnd& end) {
  std::vector<FlightFile> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(attempt, error)) {
    const std::string file = entry.path().filename();
    if (!file.starts_with("recorder-") || !file.ends_with(".bin")) continue;
    try {
      files.push_back(read_flight_file(entry.path()));
    } catch (const Error& damaged) {
      end.account.push_back(std::string("not used: ") + damaged.what());
    }
  }
  if (files.empty()) return;
  for (const std::string& sentence : recorder_verdict(files)) end.account.push_back("flight recorder: " + sentence);
}

// From result.json; false when launch did not live to write one.
bool read_result(const fs::path& attempt, RunEnd& end) {
  std::ifstream in(attempt / "result.json");
  const auto result = nlohmann::json::parse(in, nullptr, false);
  if (!result.is_object()) return false;
  try {
    end.exit_code = result.at("exit_code");
    end.state = end.exit_code == 0                                ? RunEnd::State::kFinished
                : end.exit_code == exit_code(ErrorKind::kStopped) ? RunEnd::State::kStopped
                                                                  : RunEnd::State::kFailed;
    if (end.state != RunEnd::State::kFailed) return true;
    end.cause = "the job failed with exit code " + std::to_string(end.exit_code);
    const auto& cause = result.at("cause");
    if (!cause.is_object()) return true;
    const std::string host = cause.at("host"), reason = cause.at("reason");
    if (cause.at("rank").is_number())
      end.cause += ": rank " + std::to_string(cause.at("rank").get<int>()) + (host.empty() ? "" : " on " + host);
    end.cause += ": " + reason;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

}  // namespace

const char* name(RunEnd::State state) {
  switch (state) {
    case RunEnd::State::kFinished:
      return "finished";
    case RunEnd::State::kRunning:
      return "running";
    case RunEnd::State::kHung:
      return "hung";
    case RunEnd::State::kFailed:
      return "failed";
    case RunEnd::State::kStopped:
      return "stopped";
    case RunEnd::State::kKilled:
      return "killed";
    case RunEnd::State::kEnded:
      break;
  }
  return "ended";
}

RunEnd run_end(const fs::path& run_folder, double step_ms, double idle_s) {
  RunEnd end;
  end.idle_s = idle_s;
  const std::optional<fs::path> attempt = newest_attempt(run_folder);
  if (is_locked(run_folder)) {
    const bool hung = idle_s > std::max(kHungSeconds, kHungSteps * step_ms * 1e-3);
    end.state = hung ? RunEnd::State::kHung : RunEnd::State::kRunning;
    if (!hung) return end;
    end.cause = "nothing moves: no rank has ended a step for " + fixed(idle_s, 0) + " s (usual: " + in_ms(step_ms) +
                "), though the job lives";
    if (attempt) tell_living(*attempt, end);
    return end;
  }
  if (!attempt) return end;
  if (!read_result(*attempt, end)) {
    end.state = RunEnd::State::kKilled;
    end.cause = "the job was killed: launch left no result, and rank 0 is gone";
  }
  if (!end.broken()) return end;
  tell_failures(*attempt, end);
  tell_recorders(*attempt, end);
  return end;
}

}  // namespace drivetrain
