#include "runtime/comm/tensor_checks.h"

namespace drivetrain {

void check_shares(CollectiveOp op, const Tensor& whole, const Tensor& part, int size) {
  if (whole.dtype == part.dtype && whole.count() == part.count() * size) return;
  throw Error(ErrorKind::kLogic, std::string(name(op)) + " over " + std::to_string(size) +
                                     " ranks needs equal shares: " + whole.describe() + " is not " +
                                     std::to_string(size) + " times " + part.describe() +
                                     "; pad to a multiple of the group's size");
}

void check_exchange(const Tensor& out, const Tensor& in, int size) {
  if (out.dtype != in.dtype || out.count() != in.count() || in.count() % size != 0)
    throw Error(ErrorKind::kLogic, "all_to_all over " + std::to_string(size) +
                                       " ranks needs equal chunks: " + in.describe() + " to " + out.describe() +
                                       "; pad to a multiple of the group's size");
  const bool apart = out.data + out.bytes() <= in.data || in.data + in.bytes() <= out.data;
  if (!apart) throw Error(ErrorKind::kLogic, "all_to_all cannot work in place: out and in overlap");
}

void check_root(CollectiveOp op, int root, int size) {
  if (root >= 0 && root < size) return;
  throw Error(ErrorKind::kLogic, std::string(name(op)) + " root " + std::to_string(root) +
                                     " is not a rank of this group of " + std::to_string(size) +
                                     ": roots are numbered inside the group");
}

void check_peer(CollectiveOp op, int peer, int rank, int size) {
  if (peer >= 0 && peer < size && peer != rank) return;
  throw Error(ErrorKind::kLogic, std::string(name(op)) + " with rank " + std::to_string(peer) + " from rank " +
                                     std::to_string(rank) + " of a group of " + std::to_string(size) +
                                     ": the peer must be another rank of the group");
}

}  // namespace drivetrain
