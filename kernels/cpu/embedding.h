// Embedding lookup in one slice of the vocabulary and its gradient on the CPU. The gradient adds rows in token order.
#pragma once
#include "kernels/ops.h"

namespace drivetrain::cpu {

void embedding(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, Write write);
void embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, Write write);

}  // namespace drivetrain::cpu
