// Traces of made-up runs: valid, in order, on one clock.
#include "launcher/report/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "kernels/error.h"
#include "tests/launcher/report/made_up_run.h"

namespace drivetrain {
namespace {

using Json = nlohmann::json;

MadeUpRun two_hosts() {
  MadeUpRun run;
  run.job.steps = 120;
  run.job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 1, .amount = 40}};
  run.hosts = {"node1", "node2"};
  run.offset_us = 1.7e9;  // booted half an hour earlier
  run.drift = 30e-6;
  run.noise_us = 40;
  return run;
}

Json trace_of(const MadeUpFolder& folder, TraceSummary* summary = nullptr, std::int64_t first = 0,
              std::int64_t last = INT64_MAX) {
  const auto file = folder.path() / "trace.json";
  const TraceSummary made = write_trace({folder.path().string(), first, last, file});
  if (summary != nullptr) *summary = made;
  return Json::parse(text_of_file(file));
}

TEST(Trace, IsValidAndInOrderOnEveryThread) {
  const MadeUpFolder folder(two_hosts());
  TraceSummary summary;
  const Json trace = trace_of(folder, &summary);
  EXPECT_EQ(summary.steps, static_cast<std::size_t>(kTraceSteps));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  std::size_t spans = 0;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++spans;
    const double begin = e["ts"], end = begin + e["dur"].get<double>();
    EXPECT_GE(begin, 0);
    EXPECT_GE(end, begin);
    auto& thread = threads[{e["pid"], e["tid"]}];
    if (!thread.empty()) {
      EXPECT_GE(begin, thread.back().first);
    }
    thread.emplace_back(begin, end);
  }
  EXPECT_EQ(spans, summary.events);
  EXPECT_GE(threads.size(), 6U);  // phases, dp and world of two ranks
}

TEST(Trace, NamesRanksAndTellsWhoCameLast) {
  const MadeUpFolder folder(two_hosts());
  TraceSummary summary;
  const Json trace = trace_of(folder, &summary);
  bool named = false, waited = false;
  std::map<std::int64_t, int> arrows;
  for (const Json& e : trace["traceEvents"]) {
    if (e["name"] == "process_name" && e["args"]["name"] == "rank 1 (node2)") named = true;
    if (e["ph"] == "X" && e["cat"] == "dp" && e["pid"] == 0 && e["args"]["waiting_ms"].get<double>() > 20)
      waited = e["args"]["last_rank"] == 1;
    if (e["ph"] == "s") ++arrows[e["id"]];
    if (e["ph"] == "f") --arrows[e["id"]];
  }
  EXPECT_TRUE(named);
  EXPECT_TRUE(waited);
  EXPECT_GT(summary.arrows, 0U);
  EXPECT_EQ(arrows.size(), summary.arrows);
  for (const auto& [id, balance] : arrows) EXPECT_EQ(balance, 0) << id;
}

TEST(Trace, FindsAPlantedOffsetAndDriftToTwentyMicroseconds) {
  const MadeUpFolder folder(two_hosts());
  TraceSummary summary;
  const Json trace = trace_of(folder, &summary, 1, 119);
  EXPECT_LE(summary.clock_error_us(), 20);
  EXPECT_EQ(trace["otherData"]["clocks"][1]["host"], "node2");
  EXPECT_NEAR(trace["otherData"]["clocks"][1]["drift_ppm"].get<double>(), 30, 5);
  // The true ends of a collective are equal on all ranks, but for the noise of noticing.
  std::map<std::int64_t, std::map<int, double>> ends;
  for (const Json& e : trace["traceEvents"])
    if (e["ph"] == "X" && e["cat"] == "world")
      ends[e["args"]["sequence"]][e["pid"]] = e["ts"].get<double>() + e["dur"].get<double>();
  ASSERT_GE(ends.size(), 100U);
  double sum = 0;
  for (const auto& [sequence, by_rank] : ends) {
    ASSERT_EQ(by_rank.size(), 2U);
    EXPECT_NEAR(by_rank.at(0), by_rank.at(1), 20 + 40) << sequence;
    sum += by_rank.at(1) - by_rank.at(0);
  }
  EXPECT_NEAR(sum / static_cast<double>(ends.size()), 0, 20);
}

TEST(Trace, RanksOfOneHostShareItsClock) {
  MadeUpRun run = two_hosts();
  run.hosts = {"node1", "node1"};
  run.offset_us = run.drift = 0;
  const MadeUpFolder folder(run);
  TraceSummary summary;
  trace_of(folder, &summary);
  EXPECT_EQ(summary.clock_error_us(), 0);
}

TEST(Trace, RefusesFoldersWithoutEvents) {
  EXPECT_THROW(write_trace({"/nowhere", 0, INT64_MAX, "/tmp/never.json"}), Error);
  const MadeUpFolder folder(two_hosts());
  EXPECT_THROW(trace_of(folder, nullptr, 5000, 6000), Error);
}

}  // namespace
}  // namespace drivetrain
