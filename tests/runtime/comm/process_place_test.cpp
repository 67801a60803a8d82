#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>

#include "runtime/comm/process_info.h"
#include "runtime/comm/world.h"

namespace drivetrain {
namespace {

constexpr const char* kKeys[] = {"OMPI_COMM_WORLD_RANK",
                                 "OMPI_COMM_WORLD_SIZE",
                                 "OMPI_COMM_WORLD_LOCAL_RANK",
                                 "OMPI_COMM_WORLD_LOCAL_SIZE",
                                 "PMIX_RANK",
                                 "SLURM_PROCID",
                                 "SLURM_NTASKS",
                                 "SLURM_LOCALID",
                                 "SLURM_NODEID",
                                 "SLURM_STEP_TASKS_PER_NODE"};

ProcessPlace place_with(const std::map<std::string, std::string>& env) {
  for (const char* key : kKeys) unsetenv(key);
  for (const auto& [key, value] : env) setenv(key.c_str(), value.c_str(), 1);
  const ProcessPlace place = process_place();
  for (const char* key : kKeys) unsetenv(key);
  return place;
}

void expect_place(const ProcessPlace& place, int rank, int size, int local_rank, int local_size) {
  EXPECT_EQ(place.world_rank, rank);
  EXPECT_EQ(place.world_size, size);
  EXPECT_EQ(place.local_rank, local_rank);
  EXPECT_EQ(place.local_size, local_size);
}

TEST(ProcessPlace, AloneWithoutALauncher) {
  expect_place(place_with({}), 0, 1, 0, 1);
}

TEST(ProcessPlace, OpenMpi) {
  expect_place(place_with({{"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}),
               5, 8, 1, 4);
}

TEST(ProcessPlace, SlurmStepUnderPmix) {
  expect_place(place_with({{"PMIX_RANK", "5"},
                           {"SLURM_PROCID", "5"},
                           {"SLURM_NTASKS", "7"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "2"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}}),
               5, 7, 1, 2);
}

TEST(ProcessPlace, ASlurmBatchScriptIsNoRank) {
  expect_place(place_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}}), 0, 1, 0, 1);
}

TEST(ProcessPlace, GarbageIsIgnored) {
  expect_place(place_with({{"OMPI_COMM_WORLD_RANK", "one"}, {"OMPI_COMM_WORLD_SIZE", "2"}}), 0, 1, 0, 1);
}

TEST(OpenWorld, AloneIsSelfWithoutMpi) {
  for (const char* key : kKeys) unsetenv(key);
  const auto world = open_world({});
  EXPECT_EQ(world->transport(), "self");
  EXPECT_EQ(world->size(), 1);
}

TEST(ProcessInfo, KnowsItselfAndTheDead) {
  const std::uint64_t start = process_start_time(getpid());
  EXPECT_GT(start, 0u);
  EXPECT_EQ(process_state(getpid(), start), ProcessState::kRunning);
  EXPECT_EQ(process_state(getpid(), start + 1), ProcessState::kGone);
  EXPECT_EQ(process_state(getpid(), 0), ProcessState::kUnknown);
  EXPECT_EQ(process_start_time(1 << 29), 0u);
}

}  // namespace
}  // namespace drivetrain
