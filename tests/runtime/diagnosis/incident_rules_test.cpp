// Each incident with its facts and, one fact changed, without: a rule that cannot stay silent is no rule.
#include "runtime/diagnosis/incident_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace drivetrain {
namespace {

bool matches(const IncidentFacts& facts, int number) {
  for (const IncidentMatch& m : matching_incidents(facts))
    if (m.number == number) return !m.sentence.empty() && !m.action.empty() && !m.source.empty();
  return false;
}

Verdict verdict(int rank, Cause cause, Pattern pattern = Pattern::kSteady) {
  Verdict v;
  v.rank = rank;
  v.cause = cause;
  v.pattern = pattern;
  v.own_ms = v.late_ms = 50;
  return v;
}
RankFacts in_call(int rank, std::uint64_t number, const char* call) {
  return {.rank = rank, .call_number = number, .call = call};
}

struct Case {
  int number;
  IncidentFacts with;
  std::function<void(IncidentFacts&)> heal;
};

const std::vector<Case>& cases() {
  using F = IncidentFacts;
  static const std::vector<Case> all{
      {1, {.verdicts = {verdict(1, Cause::kData)}}, [](F& f) { f.verdicts[0].cause = Cause::kCopy; }},
      {2, {.verdicts = {verdict(0, Cause::kHostGap)}}, [](F& f) { f.verdicts[0].rank = 1; }},
      {3, {.verdicts = {verdict(1, Cause::kUnequalWork)}}, [](F& f) { f.verdicts.clear(); }},
      {4,
       {.ranks = {{.rank = 1, .documents_over_mean = 3}}, .verdicts = {verdict(1, Cause::kData)}},
       [](F& f) { f.ranks[0].documents_over_mean = 1.2; }},
      {5, {.ranks = {{.rank = 2, .out_of_data = true}}, .moving = false}, [](F& f) { f.moving = true; }},
      {6,
       {.ranks = {in_call(0, 9, "dp all_reduce f32 8"), in_call(1, 9, "dp all_gather f32 8")}, .moving = false},
       [](F& f) { f.ranks[1].call = f.ranks[0].call; }},
      {7,
       {.ranks = {{.rank = 0, .loss_scale = 1024}, {.rank = 1, .loss_scale = 512}}},
       [](F& f) { f.ranks[1].loss_scale = 1024; }},
      {8, {.peer_probe_failed = true, .acs_bridges = 2}, [](F& f) { f.acs_bridges = 0; }},
      {9, {.peer_probe_failed = true, .iommu = true}, [](F& f) { f.iommu = false; }},
      {10, {.p2p_disabled_by_env = true}, [](F& f) { f.p2p_disabled_by_env = false; }},
      {11,
       {.links = {{.gen = 4, .width = 16, .peer_to_peer = false, .shared_uplink = true}}},
       [](F& f) { f.links[0].peer_to_peer = true; }},
      {12, {.links = {{.gen = 1, .max_gen = 4}}}, [](F& f) { f.links[0].under_load = false; }},
      {13, {.links = {{.width = 4, .max_width = 16}}}, [](F& f) { f.links[0].width = 16; }},
      {14,
       {.devices = {{}, {.throttle = "hardware thermal slowdown"}}},
       [](F& f) { f.devices[1].throttle = "software power cap"; }},
      {15,
       {.step_ms_first = 700, .step_ms_last = 1300, .clock_first_mhz = 1755, .clock_last_mhz = 510},
       [](F& f) { f.step_ms_last = 720; }},
      {16,
       {.step_ms_first = 700, .step_ms_last = 800, .temperature_first_c = 60, .temperature_last_c = 84},
       [](F& f) { f.temperature_last_c = 62; }},
      {17,
       {.links = {{.medium = LinkMedium::kNvlink, .lanes_up = 17, .lanes = 18}}},
       [](F& f) { f.links[0].lanes_up = 18; }},
      {18,
       {.links =
            {{.medium = LinkMedium::kNvlink, .measured_gbps = 12, .lanes_up = 18, .lanes = 18, .lane_gbps = 25}}},
       [](F& f) { f.links[0].measured_gbps = 340; }},
      {19, {.device_transport = "tcp", .rdma_present = true}, [](F& f) { f.device_transport = "rdma"; }},
      {20,
       {.device_transport = "tcp", .rdma_present = true, .rdma_usable = false, .container = true},
       [](F& f) { f.rdma_usable = true; }},
      {21, {.ranks = {{.affinity_cpus = 1, .threads = 6}}}, [](F& f) { f.ranks[0].affinity_cpus = 8; }},
      {22,
       {.ranks = {{.cpu_numa_nodes = {0}, .device_numa_node = 1}}, .numa_nodes = 2},
       [](F& f) {
         f.ranks[0].cpu_numa_nodes = {0, 1};
       }},
      {23,
       {.ranks = {{.device_pci = "0000:17:00.0", .monitored_pci = "0000:65:00.0"}}},
       [](F& f) { f.ranks[0].monitored_pci = "0000:17:00.0"; }},
      {24, {.verdicts = {verdict(-1, Cause::kHostGap, Pattern::kChangingRank)}}, [](F& f) { f.verdicts.clear(); }},
      {25,
       {.ranks = {{.device_allocations_per_step = 40}}},
       [](F& f) { f.ranks[0].device_allocations_per_step = 0; }},
      {26, {.ranks = {{.device_reads_per_step = 24}}}, [](F& f) { f.ranks[0].device_reads_per_step = 1; }},
      {27, {.checkpoint_s = 200, .comm_timeout_s = 300}, [](F& f) { f.checkpoint_s = 20; }},
      {28, {.shm_free_bytes = 64e6, .shm_needed_bytes = 500e6}, [](F& f) { f.shm_free_bytes = 8e9; }},
      {29, {.ranks = {{.contexts_on_device = 8}}}, [](F& f) { f.ranks[0].contexts_on_device = 1; }},
      {30, {.verdicts = {verdict(3, Cause::kSlowDevice)}}, [](F& f) { f.verdicts[0].cause = Cause::kUnequalWork; }},
      {31,
       {.ranks = {{.rank = 1, .process_state = 'T'}}, .moving = false},
       [](F& f) { f.ranks[0].process_state = 'R'; }},
      {32,
       {.ranks = {in_call(0, 9, "tp all_reduce"), in_call(1, 9, "tp all_reduce")}, .moving = false},
       [](F& f) { f.ranks[1].call_number = 8; }},
      {33, {.dp_exposed_share = 0.97, .gradient_buckets = 12}, [](F& f) { f.dp_exposed_share = 0.2; }},
      {34, {.links = {{.medium = LinkMedium::kPcie}}, .comm_share = 0.6}, [](F& f) { f.comm_share = 0.1; }},
  };
  return all;
}

TEST(IncidentRules, EachMatchesItsFactsAndNotTheHealedOnes) {
  for (const Case& c : cases()) {
    EXPECT_TRUE(matches(c.with, c.number)) << "incident " << c.number;
    IncidentFacts healed = c.with;
    c.heal(healed);
    EXPECT_FALSE(matches(healed, c.number)) << "incident " << c.number;
  }
}

TEST(IncidentRules, AllThirtyFourHaveARuleAndACase) {
  std::set<int> rules, tested;
  for (const IncidentRule& r : incident_rules()) EXPECT_TRUE(rules.insert(r.number).second) << r.number << " twice";
  for (const Case& c : cases()) tested.insert(c.number);
  EXPECT_EQ(rules.size(), 34U);
  EXPECT_EQ(*rules.begin(), 1);
  EXPECT_EQ(*rules.rbegin(), 34);
  EXPECT_EQ(rules, tested);
}

// A job of which nothing is known, and a healthy one with everything known.
TEST(IncidentRules, NothingKnownAndNothingWrongMatchNothing) {
  EXPECT_TRUE(matching_incidents({}).empty());
  IncidentFacts healthy{
      .ranks = {in_call(0, 7, "dp all_reduce"), in_call(1, 7, "dp all_reduce")},
      .devices = {{.utilisation = 0.98}, {.utilisation = 0.97}},
      .links = {{.medium = LinkMedium::kNvlink, .measured_gbps = 350, .lanes_up = 18, .lanes = 18, .lane_gbps = 25}},
      .acs_bridges = 2,
      .iommu = true,
      .rdma_present = true,
      .container = true,
      .numa_nodes = 2,
      .ranks_per_host = 2,
      .shm_free_bytes = 8e9,
      .shm_needed_bytes = 1e9,
      .step_ms_first = 100,
      .step_ms_last = 101,
      .checkpoint_s = 10,
      .comm_timeout_s = 300,
      .comm_share = 0.1,
      .dp_exposed_share = 0.2,
      .gradient_buckets = 8};
  for (std::size_t r = 0; r < 2; ++r) {
    healthy.ranks[r].affinity_cpus = 16;
    healthy.ranks[r].threads = 8;
    healthy.ranks[r].cpu_numa_nodes = {static_cast<int>(r)};
    healthy.ranks[r].device_numa_node = static_cast<int>(r);
    healthy.ranks[r].contexts_on_device = 1;
    healthy.ranks[r].loss_scale = 65536;
    healthy.ranks[r].device_reads_per_step = 1;
    healthy.ranks[r].process_state = 'R';
  }
  for (const IncidentMatch& m : matching_incidents(healthy)) ADD_FAILURE() << m.number << ": " << m.sentence;
}

}  // namespace
}  // namespace drivetrain
