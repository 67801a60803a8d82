// Do the ranks that should hold equal weights hold equal weights? Asked once before training; changes nothing.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/mesh.h"
#include "runtime/param_store.h"

namespace drivetrain {

// A hash of each parameter's local value, in the order of the store.
std::vector<std::uint64_t> hash_values(Device& device, const ParamStore& store);
// Throws kLogic, on every rank, naming the first parameter whose values differ between data ranks, or between tensor
// ranks where it is replicated. Collective over the world.
void check_replicas(Device& device, const ParamStore& store, Mesh& mesh);

}  // namespace drivetrain
