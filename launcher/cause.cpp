#include "launcher/cause.h"

#include <algorithm>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr int kStoppedCode = 75;

bool is_victim(const RankFailure& note) {
  return note.kind == name(ErrorKind::kComm);
}

const RankFailure* earliest(const std::vector<RankFailure>& notes, bool (*wanted)(const RankFailure&)) {
  const RankFailure* first = nullptr;
  for (const RankFailure& note : notes) {
    if (wanted(note) && (first == nullptr || note.time_ms < first->time_ms)) first = &note;
  }
  return first;
}

Outcome of_note(const Evidence& evidence, const RankFailure& note) {
  const std::string message = note.message.substr(0, note.message.find('\n'));
  return {note.exit_code, evidence.engine_exit_code, note.world_rank, note.host,
          note.phase + ": " + note.kind + ": " + message};
}

Outcome of_verdict(const Evidence& evidence, const EngineVerdict& verdict) {
  switch (verdict.kind) {
    case EngineVerdict::Kind::kRankFailed: {
      const auto rank = static_cast<std::size_t>(verdict.world_rank);
      const bool known = verdict.world_rank >= 0 && rank < evidence.rank_host.size();
      return {verdict.exit_code, evidence.engine_exit_code, verdict.world_rank,
              known ? evidence.rank_host[rank] : verdict.host, verdict.reason};
    }
    case EngineVerdict::Kind::kLaunchFailed: {
      std::string reason = verdict.reason;
      if (!evidence.last_lines.empty()) reason += "; " + evidence.last_lines.front();
      return {exit_code(ErrorKind::kLaunch), evidence.engine_exit_code, -1, verdict.host, reason};
    }
    case EngineVerdict::Kind::kNodeLost:
      return {exit_code(ErrorKind::kNodeLost), evidence.engine_exit_code, -1, verdict.host,
              "host " + verdict.host + " was lost: " + verdict.reason};
  }
  return {};
}

}  // namespace

std::string Outcome::text() const {
  if (reason.empty()) return "";
  if (world_rank < 0) return reason;
  return "rank " + std::to_string(world_rank) + (host.empty() ? "" : " on " + host) + " (" + reason + ")";
}

Outcome judge(const Evidence& evidence) {
  const bool stopped = evidence.engine_exit_code == kStoppedCode && evidence.notes.empty();
  if (evidence.engine_exit_code == 0 || stopped)
    return {evidence.engine_exit_code, evidence.engine_exit_code, -1, "", ""};
  const RankFailure* culprit = earliest(evidence.notes, [](const RankFailure& note) { return !is_victim(note); });
  if (culprit != nullptr) return of_note(evidence, *culprit);
  const RankFailure* victim = earliest(evidence.notes, is_victim);
  const auto& verdict = evidence.verdict;
  const auto blames_a_victim = [&](const RankFailure& note) { return note.world_rank == verdict->world_rank; };
  const bool only_victims = verdict && std::any_of(evidence.notes.begin(), evidence.notes.end(), blames_a_victim);
  if (verdict && !only_victims) return of_verdict(evidence, *verdict);
  if (victim != nullptr) return of_note(evidence, *victim);
  const int code = evidence.engine_exit_code;
  std::string reason = code > 128 && code < 160 ? "mpirun was killed by signal " + std::to_string(code - 128)
                                                : "mpirun failed with exit code " + std::to_string(code);
  if (!evidence.last_lines.empty()) reason += ": " + evidence.last_lines.back();
  return {exit_code(ErrorKind::kLaunch), evidence.engine_exit_code, -1, "", reason};
}

}  // namespace drivetrain
