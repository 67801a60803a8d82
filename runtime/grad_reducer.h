// Watches gradients become final and reduces them over the data ranks while backward goes on: one watermark over the
// store's flat order, a full bucket starts at once. Also knows whether a gradient is written for the first time.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/ops.h"
#include "runtime/param_store.h"

namespace drivetrain {

class GradReducer {
 public:
  GradReducer(ParamStore& store, Mesh& mesh, Device& device, DType wire);  // wire: f32, or bf16 to halve the traffic

  // Before a step's first micro-batch: every gradient counts as unwritten.
  void begin_step();
  // Before each micro-batch; only the last one of a step reduces.
  enum class Micro { kEarlier, kLast };
  void begin_micro(Micro which);
  // kOverwrite the first time p is asked for in a step, kAccumulate afterwards. Layers pass it to the op.
  Write write_mode(const Parameter& p);
  // p's gradient of this micro-batch is complete. Must follow the order of the store; throws kLogic otherwise.
  void ready(const Parameter& p);
  // After the last micro-batch: sums tp_partial gradients over tp, reduces what is left, waits. With sharding the
  // owned slices hold the sum over dp; without, every rank holds all of it. Throws if a parameter was never ready.
  void finish();
};

}  // namespace drivetrain
