// A device that computes nothing: memory is addresses that nobody may touch, ops only count. Running the real code on
// it plans a run: the arena's peak and the bytes allocated are those of the real device, the FLOPs those of its GEMMs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/device.h"
#include "kernels/ops.h"

namespace drivetrain {

struct PlannedWork {
  double gemm_flops = 0;       // linear layers
  double attention_flops = 0;  // both attention products, causal half
  std::int64_t calls = 0;
  std::size_t packed_bytes = 0;  // packed copies of the weights that linear layers used
};

class PlanDevice : public Device {
 public:
  virtual std::size_t allocated_bytes() const = 0;  // now
  virtual PlannedWork work() const = 0;
};

// `like` answers packed_weight_bytes as the real backend would; it must outlive the plan device. Null: 0 bytes.
std::unique_ptr<PlanDevice> make_plan_device(const Ops* like);

}  // namespace drivetrain
