// A random program of collectives over overlapping groups, checked step by step against a serial reference that every
// rank computes for all ranks. For any transport.
#pragma once
#include "runtime/comm/communicator.h"

namespace drivetrain::test {

// Collective over a world of at least two ranks. The same seed on every rank.
void run_random_program(Communicator& world, int steps, unsigned seed);

}  // namespace drivetrain::test
