// Peak arithmetic of known devices, for MFU. Dense figures with FP32 accumulation: data sheets print twice as much "with
// sparsity", which no training reaches. A device that is not in the table has no peak, and then there is no MFU.
#pragma once
#include <optional>
#include <span>
#include <string_view>

namespace drivetrain {

struct DevicePeak {
  std::string_view device;  // as a report names it: "H100 SXM"
  double tflops = 0;        // BF16 and FP16 alike, unless `no_bf16`
  std::string_view source;
  bool no_bf16 = false;  // FP16 only
};

// By the name that NVML and CUDA give: "NVIDIA H100 80GB HBM3". In any case of letters. Nothing for parts (MIG) and for
// names that only resemble a known one ("RTX 4090 Laptop GPU").
std::optional<DevicePeak> known_peak(std::string_view device_name);

// One row per model, for listings.
std::span<const DevicePeak> known_peaks();

}  // namespace drivetrain
