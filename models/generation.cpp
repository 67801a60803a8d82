// The inference side of Transformer: logits of token sequences, with and without a key/value cache.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "models/transformer.h"

namespace drivetrain {
namespace {

class TransformerCache final : public KvCache {
 public:
  TransformerCache(Device& device, const LayerEnv& env, std::int64_t capacity) : capacity_(capacity) {
    const std::int64_t width = env.local_kv_heads() * env.config.head_dim;
    const std::size_t layer_bytes = static_cast<std::size_t>(2 * capacity * width) * size_of(env.compute);
    buffer_ = Buffer(device, layer_bytes * static_cast<std::size_t>(env.config.layers));
    for (std::int64_t l = 0; l < env.config.layers; ++l)
      layers_.emplace_back(buffer_.data() + static_cast<std::size_t>(l) * layer_bytes, env.compute,
                           std::initializer_list<std::int64_t>{2, 1, capacity, width});
  }
  std::int64_t length() const override { return length_; }
  std::int64_t capacity() const override { return capacity_; }
  Tensor layer(std::size_t l) const { return layers_[l]; }
  void extend(std::int64_t n) { length_ += n; }

 private:
  Buffer buffer_;
  std::vector<Tensor> layers_;  // (2, 1, capacity, local Hkv * D) each
  std::int64_t capacity_, length_ = 0;
};

// The batch of one sequence of ids at positions [begin, ...), one document.
Batch one_sequence(Device& device, Arena& arena, std::span<const std::int32_t> ids, std::int64_t begin) {
  const auto n = static_cast<std::int64_t>(ids.size());
  std::vector<std::int32_t> positions(ids.size()), zeros(ids.size(), 0);
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(begin));
  const std::vector<std::int64_t> keys(ids.size(), 0);
  Batch b{arena.take(DType::kI32, {1, n}), Tensor(), arena.take(DType::kI32, {1, n}), arena.take(DType::kI32, {1, n}),
          arena.take(DType::kI64, {1, n})};
  device.upload(b.ids, std::as_bytes(ids));
  device.upload(b.positions, std::as_bytes(std::span(positions)));
  device.upload(b.doc_starts, std::as_bytes(std::span(zeros)));
  device.upload(b.row_keys, std::as_bytes(std::span(keys)));
  return b;
}

}  // namespace

std::unique_ptr<KvCache> Transformer::make_cache(std::int64_t capacity) {
  if (capacity > options_.positions)
    throw Error(ErrorKind::kConfig, "a sequence of " + std::to_string(capacity) + " tokens is longer than the " +
                                        std::to_string(options_.positions) + " positions of this model");
  return std::make_unique<TransformerCache>(device_, env_, capacity);
}

Tensor Transformer::run_tokens(std::span<const std::int32_t> ids, std::int64_t begin, KvCache* cache, Arena& arena) {
  const Batch batch = one_sequence(device_, arena, ids, begin);
  const Pass pass = make_pass(batch, TensorParallel::Residual::kReplicated, 0);
  Tensor x = arena.take(options_.compute, {pass.rows(), options_.config.dim});
  embedding_->forward(x, pass, arena);
  auto* own = dynamic_cast<TransformerCache*>(cache);
  for (std::size_t l = 0; l < blocks_.size(); ++l)
    blocks_[l]->infer(x, x, pass, rope_, arena, own ? own->layer(l) : Tensor(), begin);
  if (own) own->extend(pass.rows());
  return x;
}

std::vector<float> Transformer::gather_logits(Tensor x, Arena& arena) {
  const std::int64_t rows = x.dim(0), vocab = options_.config.vocab;
  NormStats stats = norm_->take_stats(arena, rows);
  Tensor n = arena.take(options_.compute, {rows, options_.config.dim});
  norm_->forward(n, stats, x);
  Tensor local = head_->local_logits(n, arena);
  const std::int64_t width = local.dim(1), tp = env_.tp;
  Tensor all = local.reshape({1, rows, width});
  if (tp > 1) {
    all = arena.take(DType::kF32, {tp, rows, width});
    mesh_.tp().all_gather(all, local).wait();
  }
  std::vector<float> gathered(static_cast<std::size_t>(all.count())), out(static_cast<std::size_t>(rows * vocab));
  device_.download(std::as_writable_bytes(std::span(gathered)), all);
  for (std::int64_t r = 0; r < tp; ++r)
    for (std::int64_t m = 0; m < rows; ++m) {
      const std::int64_t begin = r * width, n_cols = std::min(width, vocab - begin);
      if (n_cols > 0) std::copy_n(gathered.begin() + (r * rows + m) * width, n_cols, out.begin() + m * vocab + begin);
    }
  return out;
}

std::vector<float> Transformer::logits(std::span<const std::int32_t> ids, KvCache* cache, Rows rows, Arena& arena) {
  const std::int64_t begin = cache ? cache->length() : 0;
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count == 0) throw Error(ErrorKind::kData, "logits of an empty sequence were asked for");
  if (begin + count > (cache ? cache->capacity() : options_.positions))
    throw Error(ErrorKind::kConfig,
                "the sequence of " + std::to_string(begin + count) + " tokens does not fit into " +
                    std::to_string(cache ? cache->capacity() : options_.positions) + " positions");
  std::vector<float> out;
  // A whole prompt goes through at once; later tokens one by one, each against the cache.
  const std::int64_t step = begin == 0 ? count : 1;
  for (std::int64_t at = 0; at < count; at += step) {
    const auto scope = arena.scope();
    Tensor x = run_tokens(ids.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(step)), begin + at,
                          cache, arena);
    if (rows == Rows::kLast && at + step < count) continue;
    Tensor wanted = rows == Rows::kLast ? x.rows(x.dim(0) - 1, x.dim(0)) : x;
    const std::vector<float> part = gather_logits(wanted, arena);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

}  // namespace drivetrain
