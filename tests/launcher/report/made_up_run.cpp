#include "tests/launcher/report/made_up_run.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "runtime/comm/call_record.h"
#include "runtime/comm/communicator.h"
#include "runtime/ledger/event_file.h"
#include "runtime/ledger/ledger_file.h"
#include "runtime/metrics.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

LedgerInfo info_of(const MadeUpRun& run, int rank) {
  LedgerInfo info;
  info.world_rank = rank;
  info.world_size = run.job.dp * run.job.tp;
  info.dp = run.job.dp;
  info.tp = run.job.tp;
  info.flops_per_token = 5e5;
  info.peak_flops = 1e11;
  info.compute = "bf16";
  info.device = "made-up cpu";
  info.host = run.hosts.empty() ? "node1" : run.hosts[static_cast<std::size_t>(rank)];
  info.steady_ns = 0;
  info.unix_ns = std::int64_t{1700000000} * 1000000000;
  return info;
}

// The rank's clock reads this at a true time.
std::int64_t shown(const MadeUpRun& run, int rank, std::int64_t true_ns) {
  if (rank != 1) return true_ns;
  return true_ns + std::llround(run.offset_us * 1e3 + run.drift * static_cast<double>(true_ns));
}

void write_metrics(const fs::path& folder, const SyntheticRun& job) {
  MetricsFile metrics(folder / "metrics.jsonl");
  for (const StepRecord& row : job.ranks[0]) {
    MetricsRow m;
    m.step = row.step;
    m.loss = 2 + 3 * std::exp(-0.05 * static_cast<double>(row.step));
    m.step_ms = static_cast<double>(row.wall_ns) * 1e-6;
    m.tokens_per_s = static_cast<double>(row.tokens) / static_cast<double>(row.wall_ns) * 1e9;
    m.mfu = 0.4;
    metrics.append(m);
  }
}

void write_attempt(const fs::path& folder, const MadeUpRun& run) {
  fs::create_directories(folder / "attempt-0/ranks");
  std::ofstream result(folder / "attempt-0/result.json");
  result << "{\"exit_code\": " << run.exit_code << ", \"cause\": ";
  if (run.reason.empty())
    result << "null}";
  else
    result << R"({"rank": 1, "host": "node1", "reason": ")" << run.reason << "\"}}";
}

}  // namespace

MadeUpFolder::MadeUpFolder(const MadeUpRun& run) {
  char name[] = "/tmp/drivetrain_report_XXXXXX";
  path_ = mkdtemp(name) == nullptr ? "." : name;
  fs::create_directories(path_ / "ledger");
  SyntheticRun job = simulate(run.job);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> late(0, 1);
  for (int r = 0; r < run.job.dp * run.job.tp; ++r) {
    if (std::find(run.absent.begin(), run.absent.end(), r) != run.absent.end()) continue;
    LedgerFile rows(ledger_path(path_ / "ledger", r), info_of(run, r));
    EventFile events(events_path(path_ / "ledger", r), info_of(run, r));
    std::size_t at = 0;
    auto& own = job.events[static_cast<std::size_t>(r)];
    for (StepRecord row : job.ranks[static_cast<std::size_t>(r)]) {
      std::vector<LedgerEvent> step;
      for (; at < own.size() && own[at].step == row.step; ++at) {
        LedgerEvent e = own[at];
        e.begin_ns = shown(run, r, e.begin_ns);
        e.end_ns = shown(run, r, e.end_ns + std::llround(1e3 * run.noise_us * late(random)));
        if (e.last_arrival_ns > 0) e.last_arrival_ns = shown(run, r, e.last_arrival_ns);
        if (e.kind == LedgerEvent::Kind::kCollective) e.what = static_cast<std::uint8_t>(CollectiveOp::kAllReduce);
        step.push_back(e);
      }
      row.begin_ns = shown(run, r, row.begin_ns);
      rows.append(row);
      events.append(row, step, 0);
    }
  }
  write_metrics(path_, job);
  write_attempt(path_, run);
}

MadeUpFolder::~MadeUpFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::string text_of_file(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace drivetrain
