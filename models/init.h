// Random initialisation from a counter: every element depends on (seed, file tensor name, index in that tensor) only,
// so it is the same for any layout and number of ranks.
#pragma once
#include <cstdint>

#include "runtime/mesh.h"
#include "runtime/param_store.h"

namespace drivetrain {

// Fills values and masters. Not collective.
void init_parameters(ParamStore& store, const Mesh& mesh, std::uint64_t seed);

}  // namespace drivetrain
