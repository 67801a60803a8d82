// Deals the tensors of a checkpoint to the ranks that write them. Pure.
#pragma once
#include <string>
#include <vector>

#include "runtime/checkpoint/named_tensors.h"

namespace drivetrain {

struct PlannedTensor {
  static constexpr std::size_t kWeights = 0;  // kind k + 1 is the k-th of the optimizer's

  std::size_t tensor = 0;  // index into the named tensors
  std::size_t kind = kWeights;
  int owner = 0;  // world rank
};

// In the order of writing: all weights, then each kind of optimizer state, which only trained tensors have. Bytes are
// balanced over the ranks; every rank computes the same plan.
std::vector<PlannedTensor> plan_writes(const std::vector<NamedTensor>& tensors, std::size_t optimizer_kinds,
                                       int ranks);

}  // namespace drivetrain
