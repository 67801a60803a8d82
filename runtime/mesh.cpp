#include "runtime/mesh.h"

#include <string>

namespace drivetrain {

Mesh::Mesh(std::unique_ptr<Communicator> world, MeshShape shape) : shape_(shape), world_(std::move(world)) {
  if (shape.dp < 1 || shape.tp < 1 || shape.dp * shape.tp != world_->size())
    throw Error(ErrorKind::kConfig, "the mesh dp=" + std::to_string(shape.dp) + " x tp=" + std::to_string(shape.tp) +
                                        " does not cover " + std::to_string(world_->size()) +
                                        " ranks: choose parallel.tp so that it divides the number of ranks");
  const int world_rank = world_->rank();
  tp_ = world_->split(world_rank / shape.tp, world_rank % shape.tp);
  dp_ = world_->split(world_rank % shape.tp, world_rank / shape.tp);
}

Mesh::Mesh(MeshShape shape, std::unique_ptr<Communicator> world, std::unique_ptr<Communicator> dp,
           std::unique_ptr<Communicator> tp)
    : shape_(shape), world_(std::move(world)), dp_(std::move(dp)), tp_(std::move(tp)) {}

}  // namespace drivetrain
