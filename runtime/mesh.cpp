#include "runtime/mesh.h"

#include <string>
#include <vector>

#include "runtime/ledger/observed_comm.h"

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

void Mesh::observe(StepLedger& ledger) {
  const int world_rank = world_->rank(), dp_rank = world_rank / shape_.tp, tp_rank = world_rank % shape_.tp;
  const auto wrap = [&](std::unique_ptr<Communicator>& group, CommAxis axis, int first, int stride) {
    std::vector<int> members;
    for (int r = 0; r < group->size(); ++r) members.push_back(first + r * stride);
    group = std::make_unique<ObservedCommunicator>(std::move(group), axis, std::move(members), ledger);
  };
  wrap(world_, CommAxis::kWorld, 0, 1);
  wrap(dp_, CommAxis::kDp, tp_rank, shape_.tp);
  wrap(tp_, CommAxis::kTp, dp_rank * shape_.tp, 1);
}

}  // namespace drivetrain
