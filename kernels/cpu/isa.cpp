#include "kernels/cpu/isa.h"

#include <dnnl.hpp>

namespace drivetrain::cpu {

namespace {

// Instruction sets are bit masks, not an order.
bool has(dnnl::cpu_isa isa) {
  const auto wanted = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & wanted) == wanted;
}

}  // namespace

std::string isa_name() {
  if (has_amx()) return "amx-bf16";
  if (has(dnnl::cpu_isa::avx512_core_bf16)) return "avx512-bf16";
  if (has(dnnl::cpu_isa::avx512_core)) return "avx512";
  if (has(dnnl::cpu_isa::avx2)) return "avx2";
  if (has(dnnl::cpu_isa::sse41)) return "sse4.1";
  return "baseline";
}

bool has_amx() {
  return has(dnnl::cpu_isa::avx512_core_amx);
}

bool has_bf16_dot() {
  return has(dnnl::cpu_isa::avx512_core_bf16);
}

}  // namespace drivetrain::cpu
