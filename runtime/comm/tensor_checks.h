// The checks of a collective's arguments that one rank can make alone, in the same words for every transport.
#pragma once
#include "runtime/comm/call_record.h"

namespace drivetrain {

// Throws kLogic unless `whole` has `size` times the elements of `part`, in the same type.
void check_shares(CollectiveOp op, const Tensor& whole, const Tensor& part, int size);
// Throws kLogic unless in and out have equal types, equal counts divisible by `size`, and do not overlap.
void check_exchange(const Tensor& out, const Tensor& in, int size);
// Throws kLogic unless 0 <= root < size; roots are numbered inside the group.
void check_root(CollectiveOp op, int root, int size);
// Throws kLogic unless `peer` is another rank of the group.
void check_peer(CollectiveOp op, int peer, int rank, int size);

}  // namespace drivetrain
