// No bf16 dot product: for processors where has_bf16_dot() is false and nobody calls it.
#include "kernels/cpu/bf16_dot.h"

namespace drivetrain::cpu {

void bf16_tile_product(const TileProduct<Bf16Pair>&) {
  throw Error(ErrorKind::kLogic, "this build has no bf16 dot product");
}

double bf16_dot_rounds(std::int64_t, float&) {
  throw Error(ErrorKind::kLogic, "this build has no bf16 dot product");
}

}  // namespace drivetrain::cpu
