// What the flight recorders of a job are read to mean.
#include "launcher/recorder_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace drivetrain {
namespace {

enum class End { kDone, kUnfinished };

FlightEntry entry(CollectiveOp op, std::uint64_t sequence, End end, std::uint32_t group = 3) {
  FlightEntry e;
  e.op = op;
  e.dtype = DType::kF32;
  e.count = 8;
  e.sequence = sequence;
  e.group = group;
  e.arrival_ns = 1'000'000;
  e.last_arrival_ns = end == End::kDone ? 3'000'000 : 0;
  e.end_ns = end == End::kDone ? 3'500'000 : 0;
  e.bytes = end == End::kDone ? 32 : 0;
  return e;
}

FlightRank rank(int world_rank, RankState state, std::vector<FlightEntry> entries, int size = 2) {
  FlightRank r{world_rank, 100 + world_rank, state, entries.size(), {}, std::move(entries)};
  for (const std::uint32_t id : {3u, 0x80000005u}) {
    FlightGroup group{id, size, {}};
    std::string("the world of 2 ranks").copy(group.text.data(), group.text.size() - 1);
    r.groups.push_back(group);
  }
  return r;
}

std::string verdict(const std::vector<FlightFile>& files) {
  std::string all;
  for (const std::string& line : recorder_verdict(files)) all += line + "\n";
  return all;
}

constexpr auto kReduce = CollectiveOp::kAllReduce;
constexpr auto kBarrier = CollectiveOp::kBarrier;

TEST(RecorderReport, NamesTheFirstCallThatDiffersAndNotLaterOnes) {
  const FlightFile file{
      "node1",
      "x",
      0,
      0,
      {rank(0, RankState::kRunning,
            {entry(kReduce, 1, End::kDone), entry(kReduce, 2, End::kDone), entry(kReduce, 3, End::kUnfinished)}),
       rank(1, RankState::kRunning,
            {entry(kReduce, 1, End::kDone), entry(kBarrier, 2, End::kDone), entry(kBarrier, 3, End::kUnfinished)})}};
  EXPECT_EQ(verdict({file}),
            "the calls differ: #2 in the world of 2 ranks is all_reduce(f32[8], sum) on rank 0 (host node1, pid 100, "
            "running), but barrier() on rank 1 (host node1, pid 101, running)\n");
}

TEST(RecorderReport, NamesWhoIsStoppedAndBehind) {
  const FlightFile file{
      "node1",
      "x",
      0,
      0,
      {rank(0, RankState::kRunning, {entry(kReduce, 1, End::kDone), entry(kReduce, 2, End::kUnfinished)}),
       rank(1, RankState::kStopped, {entry(kReduce, 1, End::kDone)})}};
  EXPECT_EQ(
      verdict({file}),
      "rank 1 (host node1, pid 101, stopped) was stopped when the file was written\n"
      "behind: rank 1 (host node1, pid 101, stopped) has not called all_reduce(f32[8], sum) #2 in the world of 2 "
      "ranks, in which others wait; its last there is all_reduce(f32[8], sum) #1, done\n");
}

TEST(RecorderReport, GroupsOverMpiAreComparedAcrossHostsOthersAreNot) {
  const auto files = [](std::uint32_t group) {
    return std::vector<FlightFile>{
        {"node1", "x", 0, 0, {rank(0, RankState::kRunning, {entry(kReduce, 1, End::kDone, group)})}},
        {"node2", "x", 0, 0, {rank(1, RankState::kRunning, {entry(kBarrier, 1, End::kDone, group)})}}};
  };
  EXPECT_NE(verdict(files(0x80000005u)).find("the calls differ: #1"), std::string::npos);
  EXPECT_EQ(verdict(files(3)), "the ranks agree in every call, and no call is unfinished\n");
}

TEST(RecorderReport, MembersWithoutAFileAreCounted) {
  const FlightFile file{"node1", "x", 0, 0, {rank(0, RankState::kRunning, {entry(kReduce, 1, End::kUnfinished)})}};
  EXPECT_NE(verdict({file}).find("missing: 1 of the 2 members of the world of 2 ranks"), std::string::npos);
}

TEST(RecorderReport, MessagesAreShownButNotCompared) {
  const FlightFile file{"node1",
                        "it failed",
                        0,
                        5'000'000,
                        {rank(0, RankState::kRunning, {entry(CollectiveOp::kSend, 1, End::kDone)}),
                         rank(1, RankState::kRunning, {entry(CollectiveOp::kRecv, 1, End::kDone)})}};
  const std::string text = recorder_text({file}, 5);
  EXPECT_NE(text.find("the ranks agree"), std::string::npos) << text;
  EXPECT_NE(
      text.find("-0.004000 s  send(f32[8]) #1 in the world of 2 ranks  shm  waited 2.000 ms, moved 0.500 ms, 32 "
                "bytes"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(": it failed\n"), std::string::npos) << text;
}

TEST(RecorderReport, JsonHasTheNewestCallsOnly) {
  const FlightFile file{
      "node1",
      "x",
      0,
      0,
      {rank(0, RankState::kRunning, {entry(kReduce, 1, End::kDone), entry(kReduce, 2, End::kUnfinished)})}};
  const auto json = nlohmann::json::parse(recorder_json({file}, 1));
  const auto& entries = json.at("hosts").at(0).at("ranks").at(0).at("entries");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].at("sequence"), 2);
  EXPECT_EQ(entries[0].at("op"), "all_reduce");
  EXPECT_EQ(json.at("verdict").size(), 1u);
}

}  // namespace
}  // namespace drivetrain
