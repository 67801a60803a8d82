// The version of this build, from the CMake project.
#pragma once

namespace drivetrain {

const char* version();

}  // namespace drivetrain
