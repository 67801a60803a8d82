// What `diagnose` says about run folders on paper: a healthy job, planted stragglers, dead ranks, missing files.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/error.h"
#include "launcher/report/report_html.h"
#include "launcher/report/report_json.h"
#include "launcher/report/report_text.h"
#include "launcher/report/run_report.h"
#include "launcher/report/step_range.h"
#include "launcher/report/svg.h"
#include "launcher/report/wrap.h"
#include "runtime/comm/flight_file.h"
#include "tests/launcher/report/made_up_run.h"

namespace drivetrain {
namespace {

using Json = nlohmann::json;

MadeUpRun slow_loader() {
  MadeUpRun run;
  run.job.steps = 60;
  run.job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 1, .amount = 40}};
  return run;
}

RunReport report_of(const MadeUpFolder& folder) {
  return make_report({folder.path().string()});
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0, begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    longest = std::max(longest, end - begin);
  return longest;
}

TEST(Report, NamesThePlantedStragglerAndItsCost) {
  const MadeUpFolder folder(slow_loader());
  const RunReport report = report_of(folder);
  ASSERT_EQ(report.diagnosis.verdicts.size(), 1U);
  EXPECT_EQ(report.diagnosis.verdicts[0].rank, 1);
  EXPECT_EQ(report.diagnosis.verdicts[0].cause, Cause::kData);
  EXPECT_NEAR(report.diagnosis.verdicts[0].cost_ms, 40, 8);
  EXPECT_NE(report.first_line().find("rank 1"), std::string::npos) << report.first_line();
  EXPECT_NEAR(report.ranks[0].waits_ms, 40, 8);
  EXPECT_NEAR(report.ranks[1].caused_ms, 40, 8);
  EXPECT_NEAR(report.ranks[1].class_ms[static_cast<std::size_t>(TimeClass::kDataWait)], 41, 3);
}

TEST(Report, ClassesSumToTheStepOnEveryRank) {
  const MadeUpFolder folder(slow_loader());
  for (const RankSummary& rank : report_of(folder).ranks) {
    double sum = rank.residual_ms;
    for (const double ms : rank.class_ms) sum += ms;
    EXPECT_NEAR(sum, rank.step_ms, 1e-6) << "rank " << rank.rank;
  }
}

TEST(Report, HealthyJobHasNoStragglerAndSaysWhatWouldHaveShown) {
  MadeUpRun run;
  run.job.steps = 60;
  run.job.spikes = 0;
  const MadeUpFolder folder(run);
  const RunReport report = report_of(folder);
  EXPECT_TRUE(report.diagnosis.verdicts.empty());
  const std::string text = report_text(report);
  EXPECT_NE(text.find("no straggler"), std::string::npos);
  EXPECT_NE(text.find("would have shown"), std::string::npos);
}

TEST(Report, TextFitsAHundredColumnsAndHasEverySection) {
  MadeUpRun run = slow_loader();
  run.job.tp = 2;
  run.hosts = std::vector<std::string>(4, "a-host-with-quite-a-long-name.in.some.domain.example.org");
  const MadeUpFolder folder(run);
  const std::string text = report_text(report_of(folder));
  EXPECT_LE(longest_line(text), kReportColumns) << text;
  for (const char* section : {"rank  step ms", "verdicts", "work", "collectives, per step", "from peak to achieved",
                              "sum: the step", "   do        "})
    EXPECT_NE(text.find(section), std::string::npos) << section << "\n" << text;
}

TEST(Report, JsonHasTheDocumentedKeysAndNumbers) {
  const MadeUpFolder folder(slow_loader());
  const RunReport report = report_of(folder);
  const Json json = Json::parse(report_json(report));
  EXPECT_EQ(json["schema"], "drivetrain.diagnosis/1");
  EXPECT_EQ(json["state"], "finished");
  EXPECT_EQ(json["verdicts"][0]["rank"], 1);
  EXPECT_EQ(json["verdicts"][0]["cause"], "data_wait");
  EXPECT_EQ(json["ranks"].size(), 2U);
  EXPECT_EQ(json["ranks"][1]["classes_ms"].size(), kTimeClasses);
  std::int64_t us = json["waterfall"]["ideal_us"];
  for (const Json& loss : json["waterfall"]["losses"]) us += loss["us"].get<std::int64_t>();
  EXPECT_EQ(us, json["waterfall"]["step_us"]);
  const std::string document = text_of_file(DRIVETRAIN_SOURCE_DIR "/docs/report.md");
  const auto documented = [&](const Json& object) {
    for (const auto& [key, value] : object.items())
      EXPECT_TRUE(document.find("`" + key + "`") != std::string::npos ||
                  document.find("`" + key + "[]`") != std::string::npos)
          << key << " is not in docs/report.md";
  };
  documented(json);
  documented(json["verdicts"][0]);
  documented(json["ranks"][0]);
  documented(json["collectives"][0]);
  documented(json["changes"][0]);
}

TEST(Report, MissingRanksAreNamedAndTheRestIsShown) {
  MadeUpRun run = slow_loader();
  run.job.dp = 4;
  run.absent = {2};
  const MadeUpFolder folder(run);
  const RunReport report = report_of(folder);
  EXPECT_FALSE(report.judged);
  ASSERT_EQ(report.limits.size(), 1U);
  EXPECT_NE(report.limits[0].find("rank 2"), std::string::npos) << report.limits[0];
  EXPECT_EQ(report.ranks.size(), 3U);
  EXPECT_NE(report_text(report).find("what this report cannot say"), std::string::npos);
}

TEST(Report, OneRankHasClassesButNoStraggler) {
  MadeUpRun run;
  run.job.dp = 1;
  run.job.steps = 30;
  const MadeUpFolder folder(run);
  const RunReport report = report_of(folder);
  EXPECT_TRUE(report.diagnosis.verdicts.empty());
  EXPECT_NE(report.first_line().find("one rank"), std::string::npos);
  EXPECT_NE(report_text(report).find("nobody to compare"), std::string::npos);
}

TEST(Report, FewStepsSaySo) {
  MadeUpRun run = slow_loader();
  run.job.steps = 4;
  const MadeUpFolder folder(run);
  EXPECT_NE(report_of(folder).first_line().find("too few steps"), std::string::npos);
}

TEST(Report, StepsCanBeChosenAndOnesThatAreNotThereAreRefused) {
  const MadeUpFolder folder(slow_loader());
  const RunReport report = make_report({folder.path().string(), 10, 29});
  EXPECT_EQ(report.first_step, 10);
  EXPECT_EQ(report.last_step, 29);
  EXPECT_EQ(report.steps, 20U);
  try {
    make_report({folder.path().string(), 1000, 2000});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("there are steps 0 to 59"), std::string::npos) << error.what();
  }
}

TEST(Report, AFailedJobIsToldFirst) {
  MadeUpRun run = slow_loader();
  run.exit_code = 137;
  run.reason = "step 60: killed by signal 9";
  const MadeUpFolder folder(run);
  std::ofstream(folder.path() / "attempt-0/ranks/rank-00000.failure")
      << R"({"rank":0,"host":"node1","phase":"step 60","kind":"comm","message":"rank 1 is gone","exit_code":66,"time_ms":5})";
  const RunReport report = report_of(folder);
  EXPECT_EQ(report.end.state, RunEnd::State::kFailed);
  EXPECT_NE(report.first_line().find("rank 1 on node1: step 60: killed by signal 9"), std::string::npos)
      << report.first_line();
  ASSERT_FALSE(report.end.account.empty());
  EXPECT_NE(report.end.account[0].find("rank 1 is gone"), std::string::npos);
  EXPECT_NE(report_text(report).find("Until then: "), std::string::npos);
}

TEST(Report, AFailedJobQuotesItsFlightRecorders) {
  MadeUpRun run = slow_loader();
  run.exit_code = 12;
  run.reason = "step 60: comm: no answer";
  const MadeUpFolder folder(run);
  FlightFile file{
      .host = "node1", .reason = "all_reduce waited 5.0 s for rank 1", .steady_ns = 1000000000, .ranks = {}};
  file.ranks.push_back({.world_rank = 0, .pid = 10, .state = RankState::kRunning, .groups = {}, .entries = {}});
  file.ranks.push_back({.world_rank = 1, .pid = 11, .state = RankState::kStopped, .groups = {}, .entries = {}});
  write_flight_file(folder.path() / "attempt-0/recorder-node1.bin", file);
  std::ofstream(folder.path() / "attempt-0/recorder-node2.bin") << "cut short";
  std::string account;
  for (const std::string& line : report_of(folder).end.account) account += line + "\n";
  EXPECT_NE(account.find("flight recorder: "), std::string::npos) << account;
  EXPECT_NE(account.find("rank 1"), std::string::npos) << account;
  EXPECT_NE(account.find("not used: "), std::string::npos) << account;
}

TEST(Report, WithoutAResultTheJobWasKilled) {
  const MadeUpFolder folder(slow_loader());
  std::filesystem::remove(folder.path() / "attempt-0/result.json");
  EXPECT_EQ(report_of(folder).end.state, RunEnd::State::kKilled);
}

TEST(Report, ForeignFoldersAndLedgersAreErrorsThatNameThem) {
  EXPECT_THROW(make_report({"/nowhere"}), Error);
  const MadeUpFolder folder(slow_loader());
  std::ofstream(folder.path() / "ledger/rank-00000.bin") << std::string(1000, 'x');
  try {
    report_of(folder);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("rank-00000.bin"), std::string::npos) << error.what();
  }
}

TEST(Report, NamesOfHostsAndRunsAreEscaped) {
  MadeUpRun run = slow_loader();
  run.hosts = {"node<script>alert(1)</script>", "\"&'"};
  const MadeUpFolder folder(run);
  RunReport report = report_of(folder);
  report.run = "runs/<b>";
  const std::string page = report_html(report);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_NE(page.find("node&lt;script&gt;"), std::string::npos);
}

TEST(Report, PagesOfLongAndWideRunsStaySmall) {
  MadeUpRun run;
  run.job.steps = 400;
  run.job.dp = 80;
  run.job.faults = {{.kind = PlantedFault::Kind::kData, .rank = 71, .amount = 40}};
  const MadeUpFolder folder(run);
  const std::string page = report_html(report_of(folder));
  EXPECT_LT(page.size(), 3U << 20) << page.size();
  EXPECT_NE(page.find("rank 71"), std::string::npos);
}

TEST(RankText, ShowsOneRankAndRefusesOthers) {
  const MadeUpFolder folder(slow_loader());
  const RunReport report = report_of(folder);
  EXPECT_NE(rank_text(report, 0).find("per step for rank 1"), std::string::npos) << rank_text(report, 0);
  EXPECT_THROW(rank_text(report, 2), Error);
}

TEST(StepRange, ReadsAllForms) {
  EXPECT_EQ(step_range("3:7").first, 3);
  EXPECT_EQ(step_range("3:7").last, 7);
  EXPECT_EQ(step_range(":7").first, 0);
  EXPECT_EQ(step_range("3:").last, INT64_MAX);
  EXPECT_EQ(step_range("5").last, 5);
  for (const char* wrong : {"7:3", "a:b", "-1:2", "1:2:3", "3 :4"}) EXPECT_THROW(step_range(wrong), Error) << wrong;
}

TEST(Wrapped, BreaksBetweenWordsAndInsideOnesThatAreTooLong) {
  EXPECT_EQ(wrapped("- ", "one two three", 9), "- one two\n  three\n");
  EXPECT_EQ(wrapped("", "abcdefghij", 4), "abcd\nefgh\nij\n");
  EXPECT_EQ(wrapped("- ", ""), "- \n");
}

TEST(Escaped, LeavesNoMarkup) {
  EXPECT_EQ(escaped("a<b>&\"'\x01"), "a&lt;b&gt;&amp;&quot;&#39;\xEF\xBF\xBD");
}

}  // namespace
}  // namespace drivetrain
