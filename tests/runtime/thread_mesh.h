// A mesh of ranks that are threads of the test, each with a CPU device of its own.
#pragma once
#include <functional>

#include "kernels/cpu/cpu_device.h"
#include "runtime/comm/thread_comm.h"
#include "runtime/mesh.h"

namespace drivetrain::test {

inline void with_ranks(MeshShape shape, const std::function<void(Device&, Mesh&)>& body) {
  run_thread_ranks(shape.dp * shape.tp, [&](Communicator& world) {
    const auto device = make_cpu_device(1);
    Mesh mesh(world.split(0, world.rank()), shape);
    body(*device, mesh);
  });
}

}  // namespace drivetrain::test
