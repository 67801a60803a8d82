#include "runtime/checkpoint/write_plan.h"

#include <algorithm>
#include <numeric>

namespace drivetrain {

std::vector<PlannedTensor> plan_writes(const std::vector<NamedTensor>& tensors, std::size_t optimizer_kinds,
                                       int ranks) {
  std::vector<PlannedTensor> plan;
  for (std::size_t kind = 0; kind <= optimizer_kinds; ++kind) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (kind == PlannedTensor::kWeights || tensors[i].trainable) plan.push_back({i, kind, 0});
    }
  }
  // Largest first, each to the rank with the least so far.
  std::vector<std::size_t> order(plan.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tensors[plan[a].tensor].count() > tensors[plan[b].tensor].count();
  });
  std::vector<std::int64_t> load(static_cast<std::size_t>(ranks), 0);
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += tensors[plan[i].tensor].count();
    plan[i].owner = static_cast<int>(least - load.begin());
  }
  return plan;
}

}  // namespace drivetrain
