// The communicator of a group of one: every collective is a copy or nothing.
#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace drivetrain {

std::unique_ptr<Communicator> make_self_communicator();

}  // namespace drivetrain
