#include "runtime/ledger/ledger_ops.h"

#include <algorithm>

namespace drivetrain {
namespace {

double real(std::int64_t n) {
  return static_cast<double>(n);
}

template <class... Tensors>
double bytes_of(const Tensors&... tensors) {
  return (0.0 + ... + static_cast<double>(tensors.bytes()));
}

// An output that is added to is read first.
double written(const Tensor& t, Write write) {
  return (write == Write::kAccumulate ? 2 : 1) * bytes_of(t);
}

double gemm_flops(const Tensor& out, std::int64_t inner) {
  return 2 * real(out.count()) * real(inner);
}

// Of one product of attention (scores, or probabilities x values) over all heads.
double attention_product(const AttentionShape& s) {
  const double seq = real(s.seq), window = s.window > 0 ? std::min(real(s.window), seq) : seq;
  const double pairs = window * (seq - window / 2);
  return 2 * real(s.batch * s.heads * s.head_dim) * pairs;
}

// Queries and keys, without values.
double rotated(const AttentionShape& s) {
  return real(s.batch * s.seq * (s.heads + s.kv_heads) * s.head_dim);
}

}  // namespace

void LedgerOps::zero(Tensor x) {
  charge({OpClass::kPointwise, 0, bytes_of(x)}, [&] { inner_.zero(x); });
}
void LedgerOps::copy(Tensor y, Tensor x) {
  charge({OpClass::kPointwise, 0, bytes_of(y, x)}, [&] { inner_.copy(y, x); });
}
void LedgerOps::add(Tensor y, Tensor a, Tensor b) {
  charge({OpClass::kPointwise, real(y.count()), bytes_of(y, a, b)}, [&] { inner_.add(y, a, b); });
}

void LedgerOps::linear(Tensor y, Tensor x, Tensor w, Tensor bias) {
  charge({OpClass::kGemm, gemm_flops(y, x.dim(-1)), bytes_of(y, x, w, bias)}, [&] { inner_.linear(y, x, w, bias); });
}
void LedgerOps::linear_dx(Tensor dx, Tensor dy, Tensor w) {
  charge({OpClass::kGemm, gemm_flops(dx, dy.dim(-1)), bytes_of(dx, dy, w)}, [&] { inner_.linear_dx(dx, dy, w); });
}
void LedgerOps::linear_dw(Tensor dw, Tensor dy, Tensor x, Write write) {
  charge({OpClass::kGemm, gemm_flops(dw, dy.matrix().dim(0)), written(dw, write) + bytes_of(dy, x)},
         [&] { inner_.linear_dw(dw, dy, x, write); });
}
void LedgerOps::bias_grad(Tensor db, Tensor dy, Write write) {
  charge({OpClass::kPointwise, real(dy.count()), written(db, write) + bytes_of(dy)},
         [&] { inner_.bias_grad(db, dy, write); });
}

void LedgerOps::embedding(Tensor y, Tensor ids, Tensor table, std::int64_t vocab_begin, Write write) {
  const bool adds = write == Write::kAccumulate;
  charge({OpClass::kEmbeddingLoss, adds ? real(y.count()) : 0, written(y, write) + bytes_of(y, ids)},
         [&] { inner_.embedding(y, ids, table, vocab_begin, write); });
}
void LedgerOps::embedding_grad(Tensor dtable, Tensor ids, Tensor dy, std::int64_t vocab_begin, Write write) {
  const double rows = real(dy.count()) * static_cast<double>(size_of(dtable.dtype));
  const double table = write == Write::kAccumulate ? 2 * rows : bytes_of(dtable);
  charge({OpClass::kEmbeddingLoss, real(dy.count()), table + bytes_of(ids, dy)},
         [&] { inner_.embedding_grad(dtable, ids, dy, vocab_begin, write); });
}

void LedgerOps::rms_norm(Tensor y, Tensor inv_rms, Tensor sum, Tensor x, Tensor delta, Tensor w, float eps) {
  charge({OpClass::kNorm, 4 * real(x.count()) + real(delta.count()), bytes_of(y, inv_rms, sum, x, delta, w)},
         [&] { inner_.rms_norm(y, inv_rms, sum, x, delta, w, eps); });
}
void LedgerOps::rms_norm_grad(Tensor dx, Tensor dw, Tensor dy, Tensor x, Tensor w, Tensor inv_rms, Write write) {
  charge({OpClass::kNorm, 11 * real(x.count()), 2 * bytes_of(dx) + written(dw, write) + bytes_of(dy, x, w, inv_rms)},
         [&] { inner_.rms_norm_grad(dx, dw, dy, x, w, inv_rms, write); });
}
void LedgerOps::layer_norm(Tensor y, Tensor mean, Tensor inv_std, Tensor sum, Tensor x, Tensor delta, Tensor w,
                           Tensor b, float eps) {
  charge({OpClass::kNorm, 8 * real(x.count()) + real(delta.count()), bytes_of(y, mean, inv_std, sum, x, delta, w, b)},
         [&] { inner_.layer_norm(y, mean, inv_std, sum, x, delta, w, b, eps); });
}
void LedgerOps::layer_norm_grad(Tensor dx, Tensor dw, Tensor db, Tensor dy, Tensor x, Tensor w, Tensor mean,
                                Tensor inv_std, Write write) {
  charge({OpClass::kNorm, 14 * real(x.count()),
          2 * bytes_of(dx) + written(dw, write) + written(db, write) + bytes_of(dy, x, w, mean, inv_std)},
         [&] { inner_.layer_norm_grad(dx, dw, db, dy, x, w, mean, inv_std, write); });
}

void LedgerOps::gelu(Tensor y, Tensor x) {
  charge({OpClass::kPointwise, 9 * real(y.count()), bytes_of(y, x)}, [&] { inner_.gelu(y, x); });
}
void LedgerOps::gelu_grad(Tensor dx, Tensor dy, Tensor x) {
  charge({OpClass::kPointwise, 18 * real(dx.count()), bytes_of(dx, dy, x)}, [&] { inner_.gelu_grad(dx, dy, x); });
}
void LedgerOps::swiglu(Tensor y, Tensor gate_up) {
  charge({OpClass::kPointwise, 5 * real(y.count()), bytes_of(y, gate_up)}, [&] { inner_.swiglu(y, gate_up); });
}
void LedgerOps::swiglu_grad(Tensor dgate_up, Tensor dy, Tensor gate_up) {
  charge({OpClass::kPointwise, 11 * real(dy.count()), bytes_of(dgate_up, dy, gate_up)},
         [&] { inner_.swiglu_grad(dgate_up, dy, gate_up); });
}
void LedgerOps::dropout(Tensor y, Tensor x, Tensor row_keys, Dropout dropout) {
  charge({OpClass::kPointwise, real(y.count()), bytes_of(y, x, row_keys)},
         [&] { inner_.dropout(y, x, row_keys, dropout); });
}

void LedgerOps::rope(Tensor qkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) {
  const double moved = 2 * rotated(s) * static_cast<double>(size_of(qkv.dtype));
  charge({OpClass::kPointwise, 3 * rotated(s), moved}, [&] { inner_.rope(qkv, positions, cos, sin, s); });
}
void LedgerOps::rope_grad(Tensor dqkv, Tensor positions, Tensor cos, Tensor sin, const AttentionShape& s) {
  const double moved = 2 * rotated(s) * static_cast<double>(size_of(dqkv.dtype));
  charge({OpClass::kPointwise, 3 * rotated(s), moved}, [&] { inner_.rope_grad(dqkv, positions, cos, sin, s); });
}
void LedgerOps::attention(Tensor y, Tensor lse, Tensor qkv, Tensor doc_starts, Tensor row_keys,
                          const AttentionShape& s, Dropout dropout, std::int64_t head_begin) {
  charge({OpClass::kAttention, 2 * attention_product(s), bytes_of(y, lse, qkv, doc_starts)},
         [&] { inner_.attention(y, lse, qkv, doc_starts, row_keys, s, dropout, head_begin); });
}
void LedgerOps::attention_grad(Tensor dqkv, Tensor delta, Tensor dy, Tensor y, Tensor lse, Tensor qkv,
                               Tensor doc_starts, Tensor row_keys, const AttentionShape& s, Dropout dropout,
                               std::int64_t head_begin) {
  charge({OpClass::kAttention, 5 * attention_product(s),
          bytes_of(dqkv, dy, y, lse, qkv, doc_starts) + 2 * bytes_of(delta)},
         [&] { inner_.attention_grad(dqkv, delta, dy, y, lse, qkv, doc_starts, row_keys, s, dropout, head_begin); });
}
void LedgerOps::kv_store(Tensor cache, Tensor qkv, const AttentionShape& s, std::int64_t begin) {
  const double stored = 2 * real(s.batch * s.seq * s.kv_heads * s.head_dim);
  charge({OpClass::kPointwise, 0, 2 * stored * static_cast<double>(size_of(qkv.dtype))},
         [&] { inner_.kv_store(cache, qkv, s, begin); });
}
void LedgerOps::attention_decode(Tensor y, Tensor qkv, Tensor cache, const AttentionShape& s, std::int64_t position) {
  const double keys = real(position + 1);
  const double read = 2 * real(s.batch * s.kv_heads * s.head_dim) * keys * static_cast<double>(size_of(cache.dtype));
  charge({OpClass::kAttention, 4 * real(s.batch * s.heads * s.head_dim) * keys, bytes_of(y, qkv) + read},
         [&] { inner_.attention_decode(y, qkv, cache, s, position); });
}

void LedgerOps::loss_stats(Tensor stats, Tensor logits, Tensor targets, VocabSlice slice) {
  charge({OpClass::kEmbeddingLoss, 4 * real(logits.count()), bytes_of(stats, logits, targets)},
         [&] { inner_.loss_stats(stats, logits, targets, slice); });
}
void LedgerOps::loss_sum(Tensor loss_sum, Tensor all_stats, Tensor targets) {
  charge({OpClass::kEmbeddingLoss, 2 * real(all_stats.count()), bytes_of(loss_sum, all_stats, targets)},
         [&] { inner_.loss_sum(loss_sum, all_stats, targets); });
}
void LedgerOps::loss_grad(Tensor logits, Tensor all_stats, Tensor targets, VocabSlice slice, float scale) {
  charge({OpClass::kEmbeddingLoss, 4 * real(logits.count()), 2 * bytes_of(logits) + bytes_of(all_stats, targets)},
         [&] { inner_.loss_grad(logits, all_stats, targets, slice, scale); });
}

void LedgerOps::sum_squares(Tensor out, Tensor x) {
  charge({OpClass::kOptimizer, 2 * real(x.count()), bytes_of(out, x)}, [&] { inner_.sum_squares(out, x); });
}
void LedgerOps::adamw(Tensor master, Tensor m, Tensor v, Tensor value, Tensor grad, const AdamWArgs& args) {
  charge({OpClass::kOptimizer, 17 * real(master.count()), 2 * bytes_of(master, m, v) + bytes_of(value, grad)},
         [&] { inner_.adamw(master, m, v, value, grad, args); });
}

}  // namespace drivetrain
