// Stores keys and values of a fused qkv in the generation cache on the CPU.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

// Throws kLogic when positions [begin, begin + s.seq) do not fit the cache.
void kv_store(Tensor cache, Tensor qkv, const AttentionShape& s, std::int64_t begin);

}  // namespace drivetrain::cpu
