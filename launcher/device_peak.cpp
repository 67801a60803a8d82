#include "launcher/device_peak.h"

#include "runtime/peaks.h"

namespace drivetrain {

Peak table_peak(const std::string& device_name, DType compute) {
  const auto known = known_peak(device_name);
  if (!known) return {std::nullopt, "unknown device " + device_name};
  const bool covered = compute == DType::kF16 || (compute == DType::kBF16 && !known->no_bf16);
  const std::string device(known->device);
  if (!covered) return {std::nullopt, "the table has no " + std::string(name(compute)) + " figure for the " + device};
  return {known->tflops * 1e12, "table, " + device + ": " + std::string(known->source)};
}

}  // namespace drivetrain
