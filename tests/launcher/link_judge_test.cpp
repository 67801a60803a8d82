#include "launcher/link_judge.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

// `hosts` hosts node1, node2, ... of `each` ranks.
std::vector<RankSite> sites(int hosts, int each) {
  std::vector<RankSite> list;
  for (int h = 0; h < hosts; ++h)
    for (int r = 0; r < each; ++r) list.push_back({"node" + std::to_string(h + 1), h, "eth0"});
  return list;
}

// Every pair; within hosts 10 GB/s and 1 us, between them 1 GB/s and 50 us, up to some per cent apart.
std::vector<LinkFigure> links(const std::vector<RankSite>& places) {
  std::vector<LinkFigure> list;
  const int n = static_cast<int>(places.size());
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      const auto& from = places[static_cast<std::size_t>(a)];
      const auto& to = places[static_cast<std::size_t>(b)];
      const bool near = from.host_index == to.host_index;
      const double wobble = 1 + 0.02 * ((3 * a + 5 * b) % 7);
      list.push_back(
          {a, b, link_kind(from, to, "hierarchical"), (near ? 1e-6 : 50e-6) * wobble, (near ? 10e9 : 1e9) / wobble});
    }
  }
  return list;
}

bool names(const std::vector<std::string>& said, const std::string& part) {
  for (const std::string& sentence : said)
    if (sentence.find(part) != std::string::npos) return true;
  return false;
}

LinkFigure& link(std::vector<LinkFigure>& list, int a, int b) {
  for (LinkFigure& one : list)
    if (one.a == a && one.b == b) return one;
  return list.front();
}

TEST(LinkJudge, KnowsTheKindsOfLinks) {
  const RankSite a{"x", 0, "eth0"}, b{"y", 1, "eth0"}, c{"z", 2, "ib0"}, d{"w", 3, ""};
  EXPECT_EQ(link_kind(a, a, "hierarchical"), "shm");
  EXPECT_EQ(link_kind(a, a, "mpi"), "mpi");
  EXPECT_EQ(link_kind(a, a, "threads"), "threads");
  EXPECT_EQ(link_kind(a, b, "hierarchical"), "eth0");
  EXPECT_EQ(link_kind(a, c, "hierarchical"), "eth0-ib0");
  EXPECT_EQ(link_kind(a, d, "hierarchical"), "mpi");
}

TEST(LinkJudge, EvenLinksAreFine) {
  const auto places = sites(4, 2);
  const auto said = judge_links(links(places), places);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(names(said, "No shm link stands out among 4: median"));
  EXPECT_TRUE(names(said, "No eth0 link stands out among 6: median"));  // pairs of hosts
}

TEST(LinkJudge, ASlowPairOfHostsIsNamedOnce) {
  const auto places = sites(4, 2);
  auto list = links(places);
  for (LinkFigure& one : list)
    if (places[static_cast<std::size_t>(one.a)].host_index == 0 &&
        places[static_cast<std::size_t>(one.b)].host_index == 2)
      one.bytes_per_s /= 4;
  const auto said = judge_links(list, places);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_TRUE(names(said, "Slow: the link between ranks 0-4, 0-5, 1-4, 1-5 (node1 and node3, eth0): 2")) << said[1];
  EXPECT_TRUE(names(said, "less than the median of its kind."));
}

TEST(LinkJudge, ASlowHostIsBlamedNotItsLinks) {
  const auto places = sites(3, 1);
  auto list = links(places);
  for (LinkFigure& one : list)
    if (one.b == 2) one.bytes_per_s /= 10;
  const auto said = judge_links(list, places);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(names(said, "Slow: every eth0 link of node3, median 9")) << said[0];
}

TEST(LinkJudge, AmongThreeLinksTheOneSlowIsFound) {
  const auto places = sites(3, 1);
  auto list = links(places);
  link(list, 0, 1).bytes_per_s /= 3;
  const auto said = judge_links(list, places);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(names(said, "Slow: the link between ranks 0 and 1 (node1 and node2, eth0)")) << said[0];
}

TEST(LinkJudge, LatencyAloneIsSeen) {
  const auto places = sites(1, 5);
  auto list = links(places);
  link(list, 1, 3).latency_s *= 5;
  const auto said = judge_links(list, places);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(names(said, "Slow: the link between ranks 1 and 3 (node1, shm): ")) << said[0];
  EXPECT_TRUE(names(said, "the median latency of its kind.")) << said[0];
}

TEST(LinkJudge, LessThanHalfAgainIsNotSlow) {
  const auto places = sites(1, 5);
  auto list = links(places);
  link(list, 1, 3).bytes_per_s /= 1.35;
  EXPECT_TRUE(names(judge_links(list, places), "No shm link stands out"));
}

TEST(LinkJudge, ASpreadKindHasNoOutliers) {
  const auto places = sites(1, 5);
  auto list = links(places);
  double speed = 1e9;
  for (LinkFigure& one : list) one.bytes_per_s = (speed *= 1.5);
  EXPECT_TRUE(names(judge_links(list, places), "No shm link stands out"));
}

TEST(LinkJudge, TooFewLinksAreNotJudged) {
  const auto places = sites(2, 2);
  auto list = links(places);
  for (LinkFigure& one : list)
    if (one.kind == "eth0") one.bytes_per_s /= 100;
  const auto said = judge_links(list, places);
  EXPECT_TRUE(names(said, "Too few links of kind eth0 (1) to judge one by the others; that takes 3."));
  EXPECT_TRUE(names(said, "Too few links of kind shm (2)"));
}

}  // namespace
}  // namespace drivetrain
