// Watches gradients become final and reduces them over the data ranks while backward goes on: one watermark over the
// store's order, a full bucket starts at once. Also knows whether a gradient is written for the first time in a step.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "kernels/ops.h"
#include "runtime/param_store.h"

namespace drivetrain {

class GradReducer {
 public:
  // wire: f32, or bf16 to halve the traffic (the sum is still taken in f32). Collective over the world.
  GradReducer(ParamStore& store, Mesh& mesh, Device& device, DType wire);

  // Before a step's first micro-batch: every gradient counts as unwritten.
  void begin_step();
  // Before each micro-batch; only the last one of a step reduces.
  enum class Micro { kEarlier, kLast };
  void begin_micro(Micro which);
  // kOverwrite the first time p is asked for in a step, kAccumulate afterwards. Layers pass it to the op.
  Write write_mode(const Parameter& p);
  // p's gradient of this micro-batch is complete. Must follow the order of the store; throws kLogic otherwise, when p
  // is not trained, and when its gradient was not written in this step.
  void ready(const Parameter& p);
  // After the last micro-batch: sums tp_partial gradients over tp, reduces what is left, waits. With sharding the
  // owned slices hold the sum over dp; without, every rank holds all of it. Throws if a parameter was never ready.
  void finish();

  std::size_t wire_bytes() const { return wire_buffers_[0].bytes() + wire_buffers_[1].bytes(); }

 private:
  struct Row {
    const Parameter* parameter;
    std::size_t bucket;
    bool written;
  };
  struct Pending {
    std::size_t bucket;
    Tensor wire;  // absent when the bucket travels in f32
    Work work;
  };
  Row& row(const Parameter& p);
  void reduce(std::size_t bucket);
  void complete_oldest();

  ParamStore& store_;
  Mesh& mesh_;
  Device& device_;
  DType wire_;
  std::vector<Row> rows_;  // trained parameters in the order of backward
  std::unordered_map<const Parameter*, std::size_t> index_;
  std::vector<std::size_t> bucket_sizes_, missing_;  // parameters per bucket; not ready yet in this micro-batch
  Micro micro_ = Micro::kEarlier;
  std::size_t watermark_ = 0;
  std::array<Buffer, 2> wire_buffers_;
  std::size_t wire_turn_ = 0;
  std::deque<Pending> pending_;
};

}  // namespace drivetrain
