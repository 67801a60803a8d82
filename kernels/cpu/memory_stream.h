// A plain stream through memory, the yardstick of how fast bytes can move on this processor. It computes nothing of use.
#pragma once
#include <cstddef>
#include <span>

namespace drivetrain::cpu {

// Reads and writes every whole cache line of `memory` once, in place (each byte changes), in turn at `places` evenly
// spaced places that each go forward: as many as what is compared with it reads at once. `memory` starts on a cache line.
// Lines beyond a multiple of `places` are left out. Throws kLogic unless places > 0.
void stream_through(std::span<std::byte> memory, std::size_t places);

}  // namespace drivetrain::cpu
