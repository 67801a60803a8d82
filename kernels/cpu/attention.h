// Attention on the CPU: checks the call, splits it into items (sequence x kv head) over the threads and gives each
// thread its scratch. The mathematics is in attention_forward.cpp, attention_backward.cpp and attention_decode.cpp.
#pragma once
#include "kernels/cpu/host_pool.h"
#include "kernels/ops.h"

namespace drivetrain::cpu {

class Attention {
 public:
  explicit Attention(HostPool& pool) : scratch_(pool) {}

  void forward(Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts, Tensor row_keys, const AttentionShape& s,
               Dropout dropout, std::int64_t head_begin);
  void backward(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts,
                Tensor row_keys, const AttentionShape& s, Dropout dropout, std::int64_t head_begin);
  void decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape& s, std::int64_t position);

 private:
  Scratch scratch_;
};

}  // namespace drivetrain::cpu
