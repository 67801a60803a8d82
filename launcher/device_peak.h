// The denominator of MFU: arithmetic of one rank's device, and who says so.
#pragma once
#include <optional>
#include <string>

#include "kernels/tensor.h"

namespace drivetrain {

struct Peak {
  std::optional<double> flops;  // FLOP/s of one rank's device in the compute dtype; none: unknown, so there is no MFU
  std::string source;           // where the number comes from, or why there is none
};

// From the table of known devices (runtime/peaks.h), which holds 16-bit figures.
Peak table_peak(const std::string& device_name, DType compute);

}  // namespace drivetrain
