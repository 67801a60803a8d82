#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "runtime/comm/world.h"

namespace drivetrain {
namespace {

std::optional<int> env_number(const char* key) {
  const char* text = std::getenv(key);
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

// Slurm's "2(x3),1": 2 tasks on each of three nodes, then 1 on the next. The entry of node `index`.
std::optional<int> tasks_on_node(std::string_view list, int index) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    int tasks = 0, repeat = 1;
    const auto parsed = std::from_chars(item.data(), item.data() + item.size(), tasks);
    if (parsed.ec != std::errc()) return std::nullopt;
    if (const auto x = item.find("(x"); x != std::string_view::npos)
      std::from_chars(item.data() + x + 2, item.data() + item.size(), repeat);
    if (index < repeat) return tasks;
    index -= repeat;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return std::nullopt;
}

std::optional<ProcessPlace> from_open_mpi() {
  const auto rank = env_number("OMPI_COMM_WORLD_RANK"), size = env_number("OMPI_COMM_WORLD_SIZE");
  if (!rank || !size) return std::nullopt;
  return ProcessPlace{*rank, *size, env_number("OMPI_COMM_WORLD_LOCAL_RANK").value_or(0),
                      env_number("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(1)};
}

// PMIX_RANK tells a task of srun from a batch script, which sees the same SLURM_ variables but is no rank.
std::optional<ProcessPlace> from_slurm() {
  const auto rank = env_number("PMIX_RANK"), size = env_number("SLURM_NTASKS");
  if (!rank || !size || !std::getenv("SLURM_PROCID")) return std::nullopt;
  ProcessPlace place{*rank, *size, env_number("SLURM_LOCALID").value_or(0), 1};
  const char* tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  if (tasks) place.local_size = tasks_on_node(tasks, env_number("SLURM_NODEID").value_or(0)).value_or(1);
  return place;
}

}  // namespace

ProcessPlace process_place() {
  if (const auto place = from_open_mpi()) return *place;
  if (const auto place = from_slurm()) return *place;
  return {};
}

}  // namespace drivetrain
