// Everything that `drivetrain diagnose` says about a run, as plain values: what text, JSON and HTML are written from.
// Times in milliseconds per step unless said otherwise.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/report/run_end.h"
#include "runtime/diagnosis/verdict.h"
#include "runtime/diagnosis/waterfall.h"
#include "runtime/ledger/ledger_info.h"
#include "runtime/monitor/link.h"

namespace drivetrain {

struct RankSummary {  // means over the steps looked at
  int rank = 0;
  std::string host, device;
  double step_ms = 0;
  std::array<double, kTimeClasses> class_ms{};
  double residual_ms = 0;  // in no class
  double waits_ms = 0;     // in collectives, for ranks that came later
  double caused_ms = 0;    // that all others together waited for this one
  double load = 1;         // work of forward and backward over the mean of the ranks
  double tokens = 0;       // of its own data
  double busy = 0;         // share of the step that its thread ran, spinning included
  double run_delay_ms = 0, major_faults = 0, ledger_ms = 0;
  std::array<OpTotals, kOpClasses> ops{};  // per step
};

// A group of ranks that meets in collectives, and how fast their data moved once all had come.
struct LinkSummary {
  CommAxis axis = CommAxis::kWorld;
  std::vector<int> ranks;
  double calls = 0, bytes = 0, in_flight_ms = 0;  // per step; in flight: from the last arrival to the end
  double gb_per_s() const { return in_flight_ms > 0 ? bytes / in_flight_ms * 1e-6 : 0; }  // of tensor bytes
};

// Lateness of each rank's own work over its peers', in columns of as many steps as keep the map small.
struct LatenessMap {
  std::size_t columns = 0;
  std::vector<std::int64_t> first_step;  // of each column
  std::vector<double> ms;                // rank major; the mean of a column's steps
  double at(std::size_t rank, std::size_t column) const { return ms[rank * columns + column]; }
};

struct CurvePoint {
  std::int64_t step = 0;
  double loss = 0, step_ms = 0, tokens_per_s = 0;
  std::optional<double> mfu, eval_loss;
};

struct Timeline {  // of one step, on the clock of rank 0; empty without events
  std::int64_t step = 0;
  double wall_ms = 0;
  std::int64_t begin_ns = 0;                     // earliest begin of a rank
  std::vector<std::vector<LedgerEvent>> events;  // by rank
  std::int64_t dropped = 0;                      // events that a step's memory had no room for
  double clock_error_us = 0;                     // largest of the ranks
};

struct RunReport {
  std::string run;  // as named by the user
  LedgerInfo info;  // of the lowest rank that left rows
  RunEnd end;
  std::vector<std::string> limits;  // what cannot be said, and why
  std::int64_t first_step = 0, last_step = 0;
  std::size_t steps = 0;
  bool judged = false;  // rows of every rank were there
  Diagnosis diagnosis;  // of judged runs
  RunFacts facts;
  double tokens_per_s = 0;
  std::vector<RankSummary> ranks;
  std::vector<double> waiting_ms;  // [waiting rank in ranks x culprit in ranks]
  std::vector<LinkSummary> links;
  std::vector<std::string> link_remarks, device_remarks, incidents;
  std::vector<DevicePair> pairs;  // how devices of a host reach each other
  Waterfall waterfall;
  std::vector<Change> changes;
  LatenessMap lateness;
  std::vector<CurvePoint> curve;  // at most a thousand
  Timeline worst;

  // The answer in plain words; what went wrong comes before who was slow.
  std::string first_line() const;
};

// Where there is room for only `most` ranks: those that caused or suffered most waiting, by rank.
std::vector<const RankSummary*> notable_ranks(const RunReport& report, std::size_t most);

struct ReportRequest {
  std::string run;  // folder
  std::int64_t first_step = 0, last_step = INT64_MAX;
};

// Steps looked at unless the request names others: enough for every statistic, and bounded for long runs. Jobs of more
// than 64 ranks are looked at for fewer, at least 100.
constexpr std::int64_t kReportSteps = 2000;

// Reads the run folder, running or not. Throws kData naming the folder or file when there is nothing to read.
RunReport make_report(const ReportRequest& request);

}  // namespace drivetrain
