// A random program of collectives over overlapping groups, checked step by step against a serial reference that every
// rank computes for all ranks. For any transport.
#pragma once
#include "runtime/comm/communicator.h"

namespace drivetrain::test {

enum class ProgramMemory { kOrdinary, kSymmetric };

// Collective over a world of at least two ranks. The same seed on every rank. Each step starts up to four collectives,
// on memory of their own and on whichever groups, and waits for them in an order that differs between ranks; now and
// then a group is replaced by another one.
void run_random_program(Communicator& world, int steps, unsigned seed,
                        ProgramMemory memory = ProgramMemory::kOrdinary);

}  // namespace drivetrain::test
