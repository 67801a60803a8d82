// A communicator of any size that moves nothing, for planning on a PlanDevice.
#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace drivetrain {

std::unique_ptr<Communicator> make_plan_communicator(int rank, int size);

}  // namespace drivetrain
