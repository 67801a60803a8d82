#include "launcher/report/run_files.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/error.h"
#include "launcher/report/run_clocks.h"
#include "runtime/config/config.h"
#include "runtime/ledger/event_file.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

// Steps around the drawn one whose collectives tie the clocks together.
constexpr std::int64_t kClockSteps = 20;

// Comparing ranks costs their number squared, so that wide jobs are looked at for fewer steps.
std::int64_t newest_steps(int ranks) {
  constexpr std::int64_t kMostRows = 1 << 17, kFewest = 100;
  return std::clamp(kMostRows / std::max(1, ranks), kFewest, kReportSteps);
}

fs::path ledger_folder(const fs::path& run) {
  return fs::is_directory(run / "ledger") ? run / "ledger" : run;
}

void keep_requested(RankLedger& ledger, const ReportRequest& request) {
  std::erase_if(ledger.records,
                [&](const StepRecord& row) { return row.step < request.first_step || row.step > request.last_step; });
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  return ranks.size() > kShown ? text + " and " + std::to_string(ranks.size() - kShown) + " more" : text;
}

std::optional<double> number(const nlohmann::json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

}  // namespace

RunRows read_rows(const ReportRequest& request) {
  const fs::path run = request.run;
  if (!fs::exists(run))
    throw Error(ErrorKind::kData, request.run + " does not exist; name the folder of a run, as in runs/quickstart");
  const bool asked = request.first_step > 0 || request.last_step < INT64_MAX;
  RunRows rows;
  const fs::path first = ledger_path(ledger_folder(run), 0);
  const int world = fs::exists(first) ? read_ledger(first, 1).info.world_size : 1;
  rows.ledgers = read_run_ledger(run, asked ? 0 : newest_steps(world));
  const bool any = !rows.ledgers[0].records.empty();
  const std::int64_t oldest = any ? rows.ledgers[0].records.front().step : 0;
  const std::int64_t newest = any ? rows.ledgers[0].records.back().step : 0;
  std::vector<int> silent, missing;
  for (RankLedger& ledger : rows.ledgers) {
    if (asked) keep_requested(ledger, request);
    if (ledger.records.empty()) silent.push_back(ledger.info.world_rank);
  }
  const LedgerInfo& info = rows.ledgers[0].info;
  for (int r = 0; r < info.world_size; ++r) {
    const auto is_it = [&](const RankLedger& ledger) { return ledger.info.world_rank == r; };
    if (std::none_of(rows.ledgers.begin(), rows.ledgers.end(), is_it)) missing.push_back(r);
  }
  if (!missing.empty())
    rows.limits.push_back("the ledger of " + ranks_text(missing) +
                          " is not in this folder (hosts that do not share " +
                          "it keep their own): copy it here to compare all ranks");
  if (!silent.empty() && asked && any)
    throw Error(ErrorKind::kData, request.run + " has no rows of " + ranks_text(silent) +
                                      " for the steps asked for; " + "there are steps " + std::to_string(oldest) +
                                      " to " + std::to_string(newest));
  if (!silent.empty())
    rows.limits.push_back(ranks_text(silent) + " left no row yet: a step is written when it has ended");
  rows.complete = missing.empty();
  std::vector<std::vector<StepRecord>> records;
  for (const RankLedger& ledger : rows.ledgers) records.push_back(ledger.records);
  const auto common = common_steps(records);
  // common_steps() looks into its copies; the same rows live in the ledgers.
  for (std::size_t i = 0; i < common.size(); ++i)
    rows.window.ranks.push_back(
        std::span<const StepRecord>(rows.ledgers[i].records)
            .subspan(static_cast<std::size_t>(common[i].data() - records[i].data()), common[i].size()));
  rows.window.dp = rows.complete ? info.dp : static_cast<int>(rows.ledgers.size());
  rows.window.tp = rows.complete ? info.tp : 1;
  for (const RankLedger& ledger : rows.ledgers) rows.window.hosts.push_back(ledger.info.host);
  return rows;
}

std::vector<CurvePoint> read_curve(const fs::path& run_folder, std::size_t most) {
  std::vector<CurvePoint> all;
  std::ifstream in(run_folder / "metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object()) continue;
    const auto step = number(row, "step"), loss = number(row, "loss");
    if (!step || !loss) continue;
    all.push_back({static_cast<std::int64_t>(*step), *loss, number(row, "step_ms").value_or(0),
                   number(row, "tokens_per_s").value_or(0), number(row, "mfu"), number(row, "eval_loss")});
  }
  const std::size_t stride = (all.size() + most - 1) / std::max<std::size_t>(most, 1);
  if (stride <= 1) return all;
  std::vector<CurvePoint> thin;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (i % stride == 0 || i + 1 == all.size() || all[i].eval_loss) thin.push_back(all[i]);
  return thin;
}

RunFacts read_facts(const fs::path& run_folder) {
  RunFacts facts;
  try {
    const Config config = load_config(run_folder / "config.yaml", {});
    facts.data_workers = static_cast<int>(config.data.workers);
    facts.zero = static_cast<int>(config.parallel.zero);
    facts.compute = config.precision.compute;
    facts.reduce = config.precision.reduce;
  } catch (const Error&) {
    return {};  // actions are then worded without the values of today
  }
  return facts;
}

std::vector<std::int64_t> steps_with_events(const RunRows& rows, const fs::path& run_folder) {
  const auto& window = rows.window;
  if (window.steps() == 0) return {};
  std::vector<std::pair<std::int64_t, std::int64_t>> wall;  // longest of the ranks, step
  std::vector<std::int64_t> kept;
  const fs::path file = events_path(ledger_folder(run_folder), rows.ledgers[0].info.world_rank);
  if (!fs::exists(file)) return {};
  for (const StepEvents& step : read_events(file, window.ranks[0].front().step, window.ranks[0].back().step).steps)
    if (!step.events.empty()) kept.push_back(step.step);
  for (std::size_t s = 0; s < window.steps(); ++s) {
    std::int64_t longest = 0;
    for (const auto& rank : window.ranks)
      longest =
          std::max(longest, rank[s].wall_ns - rank[s].at(TimeClass::kEval) - rank[s].at(TimeClass::kCheckpoint));
    const std::int64_t step = window.ranks[0][s].step;
    if (std::binary_search(kept.begin(), kept.end(), step)) wall.emplace_back(longest, step);
  }
  std::sort(wall.rbegin(), wall.rend());
  std::vector<std::int64_t> steps;
  for (const auto& [ns, step] : wall) steps.push_back(step);
  return steps;
}

Timeline read_timeline(const RunRows& rows, const fs::path& run_folder, std::int64_t step) {
  Timeline timeline;
  std::vector<std::vector<LedgerEvent>> around;
  for (const RankLedger& ledger : rows.ledgers) {
    const fs::path file = events_path(ledger_folder(run_folder), ledger.info.world_rank);
    if (!fs::exists(file)) return {};
    const std::int64_t first = std::max(step - kClockSteps, ledger.info.resumed_after + 1);
    bool found = false;
    around.emplace_back();
    for (const StepEvents& one : read_events(file, std::min(first, step), step + kClockSteps).steps) {
      around.back().insert(around.back().end(), one.events.begin(), one.events.end());
      if (one.step != step) continue;
      found = true;
      timeline.wall_ms = std::max(timeline.wall_ms, static_cast<double>(one.wall_ns) * kMsPerNs);
      timeline.dropped += one.dropped;
      timeline.events.push_back(one.events);
    }
    if (!found) return {};
  }
  timeline.step = step;
  std::vector<LedgerInfo> infos;
  for (const RankLedger& ledger : rows.ledgers) infos.push_back(ledger.info);
  const std::vector<ClockMap> clocks = run_clocks(infos, {around.begin(), around.end()});
  timeline.begin_ns = INT64_MAX;
  for (std::size_t r = 0; r < clocks.size(); ++r) {
    timeline.clock_error_us = std::max(timeline.clock_error_us, clocks[r].error_ns * 1e-3);
    for (LedgerEvent& event : timeline.events[r]) {
      event.begin_ns = clocks[r].to_reference(event.begin_ns);
      event.end_ns = clocks[r].to_reference(event.end_ns);
      if (event.last_arrival_ns != 0) event.last_arrival_ns = clocks[r].to_reference(event.last_arrival_ns);
      timeline.begin_ns = std::min(timeline.begin_ns, event.begin_ns);
    }
  }
  return timeline;
}

}  // namespace drivetrain
