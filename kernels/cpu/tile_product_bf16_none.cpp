// The bf16 tile product on processors for which there is none: has_bf16_dot() is false there and nobody calls it.
#include "kernels/cpu/tile_product.h"

namespace drivetrain::cpu {

void bf16_tile_product(const TileProduct<Bf16Pair>&) {
  throw Error(ErrorKind::kLogic, "this build has no bf16 dot product");
}

}  // namespace drivetrain::cpu
