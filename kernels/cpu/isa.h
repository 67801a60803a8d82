// What this processor can do, as far as the kernels care. Found at run time, never at compile time.
#pragma once
#include <string>

namespace drivetrain::cpu {

// "avx512-bf16", "avx512", "avx2", ...: the best instruction set that the products use.
std::string isa_name();
// Whether this processor multiplies bf16 pairs by itself. Otherwise bf16 storage computes in f32.
bool has_bf16_dot();
// Whether it has matrix tiles (AMX) for bf16 as well.
bool has_amx();

}  // namespace drivetrain::cpu
