// The world as data x tensor axes. world_rank = dp_rank * tp + tp_rank: tensor peers are neighbours, inside a node.
#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace drivetrain {

class StepLedger;

struct MeshShape {
  int dp = 1, tp = 1;
};

class Mesh {
 public:
  // Collective over the world. Throws kConfig when dp * tp is not the world's size.
  Mesh(std::unique_ptr<Communicator> world, MeshShape shape);
  // From groups made elsewhere (planning).
  Mesh(MeshShape shape, std::unique_ptr<Communicator> world, std::unique_ptr<Communicator> dp,
       std::unique_ptr<Communicator> tp);

  // Charges every later collective of the three groups to the ledger, which outlives them. Once, before anybody keeps
  // a reference to a group.
  void observe(StepLedger& ledger);

  Communicator& world() { return *world_; }
  Communicator& dp() { return *dp_; }
  Communicator& tp() { return *tp_; }
  MeshShape shape() const { return shape_; }
  int dp_rank() const { return dp_->rank(); }
  int tp_rank() const { return tp_->rank(); }

 private:
  MeshShape shape_;
  std::unique_ptr<Communicator> world_, dp_, tp_;
};

}  // namespace drivetrain
