#include "kernels/cpu/cpu_ops.h"

#include "kernels/cpu/activation.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/kv_cache.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/rope.h"

// Every op first sets the device's thread count: the caller may be any thread of the process, and OpenMP keeps the count
// per thread.
namespace drivetrain::cpu {

void CpuOps::zero(Tensor x) {
  use_threads(threads_);
  cpu::zero(x);
}

void CpuOps::copy(Tensor y, Tensor x) {
  use_threads(threads_);
  cpu::copy(y, x);
}

void CpuOps::add(Tensor y, Tensor a, Tensor b) {
  use_threads(threads_);
  cpu::add(y, a, b);
}

void CpuOps::linear(Tensor y, Tensor x, Tensor w, Tensor bias) {
  use_threads(threads_);
  linear_.forward(y, x, w, bias);
}

void CpuOps::linear_dx(Tensor dx, Tensor dy, Tensor w) {
  use_threads(threads_);
  linear_.dx(dx, dy, w);
}

void CpuOps::linear_dw(Tensor dw, Tensor dy, Tensor x, Write write) {
  use_threads(threads_);
  linear_.dw(dw, dy, x, write);
}

void CpuOps::bias_grad(Tensor db, Tensor dy, Write write) {
  use_threads(threads_);
  cpu::bias_grad(db, dy, write);
}

void CpuOps::weights_changed() {
  use_threads(threads_);
  linear_.weights_changed();
}

std::size_t CpuOps::packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const {
  use_threads(threads_);
  return linear_.packed_weight_bytes(n, k, dtype);
}

void CpuOps::embedding(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, Write write) {
  use_threads(threads_);
  cpu::embedding(y, ids, table, vocab_begin, write);
}

void CpuOps::embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, Write write) {
  use_threads(threads_);
  cpu::embedding_grad(dtable, ids, dy, vocab_begin, write);
}

void CpuOps::rms_norm(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps) {
  use_threads(threads_);
  cpu::rms_norm(y, inv_rms, sum, x, delta, w, eps);
}

void CpuOps::rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor inv_rms, Write write) {
  use_threads(threads_);
  cpu::rms_norm_grad(dx, dw, dy, x, w, inv_rms, write);
}

void CpuOps::layer_norm(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w, Tensor b,
                        float eps) {
  use_threads(threads_);
  cpu::layer_norm(y, mean, inv_std, sum, x, delta, w, b, eps);
}

void CpuOps::layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean,
                             Tensor inv_std, Write write) {
  use_threads(threads_);
  cpu::layer_norm_grad(dx, dw, db, dy, x, w, mean, inv_std, write);
}

void CpuOps::gelu(Tensor y, Tensor x) {
  use_threads(threads_);
  cpu::gelu(y, x);
}

void CpuOps::gelu_grad(Tensor dx, Tensor dy, Tensor x) {
  use_threads(threads_);
  cpu::gelu_grad(dx, dy, x);
}

void CpuOps::swiglu(Tensor y, Tensor gate_up) {
  use_threads(threads_);
  cpu::swiglu(y, gate_up);
}

void CpuOps::swiglu_grad(Tensor dgate_up, Tensor dy, Tensor gate_up) {
  use_threads(threads_);
  cpu::swiglu_grad(dgate_up, dy, gate_up);
}

void CpuOps::dropout(Tensor y, Tensor x, Tensor row_keys, Dropout dropout) {
  use_threads(threads_);
  cpu::dropout(y, x, row_keys, dropout);
}

void CpuOps::rope(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) {
  use_threads(threads_);
  cpu::rope(qkv, positions, cos, sin, s);
}

void CpuOps::rope_grad(Tensor dqkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) {
  use_threads(threads_);
  cpu::rope_grad(dqkv, positions, cos, sin, s);
}

void CpuOps::attention(Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts, Tensor row_keys, const AttentionShape& s,
                       Dropout dropout, std::int64_t head_begin) {
  use_threads(threads_);
  attention_.forward(y, lse, qkv, doc_starts, row_keys, s, dropout, head_begin);
}

void CpuOps::attention_grad(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts,
                            Tensor row_keys, const AttentionShape& s, Dropout dropout, std::int64_t head_begin) {
  use_threads(threads_);
  attention_.backward(dqkv, delta, dy, y, lse, qkv, doc_starts, row_keys, s, dropout, head_begin);
}

void CpuOps::kv_store(Tensor cache, Tensor qkv, const AttentionShape& s, std::int64_t begin) {
  use_threads(threads_);
  cpu::kv_store(cache, qkv, s, begin);
}

void CpuOps::attention_decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape& s, std::int64_t position) {
  use_threads(threads_);
  attention_.decode(y, qkv, cache, s, position);
}

void CpuOps::loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice) {
  use_threads(threads_);
  cpu::loss_stats(stats, logits, targets, slice);
}

void CpuOps::loss_sum(Tensor loss_sum, Tensor all_stats, Tensor targets) {
  use_threads(threads_);
  cpu::loss_sum(loss_sum, all_stats, targets);
}

void CpuOps::loss_grad(Tensor logits, Tensor all_stats, Tensor targets, VocabSlice slice, float scale) {
  use_threads(threads_);
  cpu::loss_grad(logits, all_stats, targets, slice, scale);
}

void CpuOps::sum_squares(Tensor out, Tensor x) {
  use_threads(threads_);
  cpu::sum_squares(out, x);
}

void CpuOps::adamw(Tensor master, Tensor m, Tensor v, Tensor value, Tensor grad, const AdamWArgs& args) {
  use_threads(threads_);
  cpu::adamw(master, m, v, value, grad, args);
}

}  // namespace drivetrain::cpu
