#include "launcher/attempt.h"

#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/error.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

std::int64_t unix_time_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string dumped(const nlohmann::ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Attempt::Attempt(const fs::path& run_folder) {
  std::error_code error;
  const fs::path run = fs::absolute(run_folder);
  fs::create_directories(run, error);
  for (int number = 0; !error; ++number) {
    folder_ = run / ("attempt-" + std::to_string(number));
    if (fs::create_directory(folder_, error)) break;
  }
  if (!error) fs::create_directory(rank_folder(), error);
  if (error) {
    throw Error(ErrorKind::kIo, "cannot make the run folder " + run.string() + ": " + error.message() +
                                    "; choose another with --set run.dir=FOLDER");
  }
}

void Attempt::write_command(const std::string& text) const {
  std::ofstream(folder_ / "command.txt") << text;
}

void Attempt::event(const std::string& name, const std::map<std::string, std::string>& details) const {
  nlohmann::ordered_json line = {{"time_ms", unix_time_ms()}, {"event", name}};
  for (const auto& [key, value] : details) line[key] = value;
  std::ofstream(folder_ / "events.jsonl", std::ios::app) << dumped(line, -1);
}

void Attempt::write_result(const Outcome& outcome, int ranks, std::chrono::milliseconds wall) const {
  nlohmann::ordered_json result = {{"exit_code", outcome.exit_code},
                                   {"engine_exit_code", outcome.engine_exit_code},
                                   {"ranks", ranks},
                                   {"wall_ms", wall.count()},
                                   {"cause", nullptr}};
  if (!outcome.reason.empty()) {
    result["cause"] = {{"rank", nullptr}, {"host", outcome.host}, {"reason", outcome.reason}};
    if (outcome.world_rank >= 0) result["cause"]["rank"] = outcome.world_rank;
  }
  const fs::path draft = folder_ / "result.json.part";
  std::ofstream stream(draft);
  stream << dumped(result, 2);
  stream.close();
  std::error_code error;
  if (stream) fs::rename(draft, folder_ / "result.json", error);
}

std::vector<RankFailure> Attempt::failures() const {
  std::vector<RankFailure> notes;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(rank_folder(), error)) {
    if (entry.path().extension() != ".failure") continue;
    if (const auto note = read_rank_failure(entry.path())) notes.push_back(*note);
  }
  return notes;
}

std::vector<std::string> Attempt::last_error_lines(int world_rank, std::size_t count) const {
  std::ifstream stream(rank_file(rank_folder(), world_rank, "err"));
  stream.seekg(0, std::ios::end);
  const std::streamoff size = stream ? static_cast<std::streamoff>(stream.tellg()) : 0;
  stream.seekg(std::max<std::streamoff>(0, size - 65536));
  std::deque<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
    if (lines.size() > count) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

}  // namespace drivetrain
