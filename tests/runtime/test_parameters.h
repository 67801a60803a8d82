// Small parameters and meshes for the tests of runtime/.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/comm/plan_comm.h"
#include "runtime/mesh.h"
#include "runtime/parameter.h"

namespace drivetrain::test {

inline Parameter matrix(const std::string& name, std::int64_t rows, std::int64_t cols, Split split = Split::kNone) {
  Parameter p;
  p.name = name;
  p.blocks = {{.rows = rows, .hf_name = name, .hf_rows = rows}};
  p.cols = cols;
  p.split = split;
  return p;
}

inline Parameter vector(const std::string& name, std::int64_t n, Split split = Split::kNone) {
  Parameter p = matrix(name, n, 1, split);
  p.vector = true;
  p.decay = false;
  return p;
}

inline std::unique_ptr<Mesh> plan_mesh(int dp, int tp, int dp_rank, int tp_rank) {
  return std::make_unique<Mesh>(MeshShape{dp, tp}, make_plan_communicator(dp_rank * tp + tp_rank, dp * tp),
                                make_plan_communicator(dp_rank, dp), make_plan_communicator(tp_rank, tp));
}

}  // namespace drivetrain::test
