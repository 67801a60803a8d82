#include "launcher/rank_files.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace drivetrain {

std::filesystem::path rank_file(const std::filesystem::path& folder, int world_rank, const std::string& suffix) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%05d.", world_rank);
  return folder / (name + suffix);
}

void write_rank_failure(const std::filesystem::path& folder, const RankFailure& failure) noexcept {
  try {
    const nlohmann::json note = {{"rank", failure.world_rank}, {"host", failure.host},
                                 {"phase", failure.phase},     {"kind", failure.kind},
                                 {"message", failure.message}, {"exit_code", failure.exit_code},
                                 {"time_ms", failure.time_ms}};
    const std::filesystem::path file = rank_file(folder, failure.world_rank, "failure");
    const std::filesystem::path draft = file.string() + ".part";
    std::ofstream(draft) << note.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    std::filesystem::rename(draft, file);
  } catch (...) {
    return;
  }
}

std::optional<RankFailure> read_rank_failure(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const nlohmann::json note = nlohmann::json::parse(stream, nullptr, false);
  if (!note.is_object()) return std::nullopt;
  try {
    return RankFailure{note.at("rank"),    note.at("host"),      note.at("phase"),  note.at("kind"),
                       note.at("message"), note.at("exit_code"), note.at("time_ms")};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

}  // namespace drivetrain
