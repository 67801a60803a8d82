#include "runtime/grad_reducer.h"

#include <algorithm>

namespace drivetrain {

GradReducer::GradReducer(ParamStore& store, Mesh& mesh, Device& device, DType wire)
    : store_(store), mesh_(mesh), device_(device), wire_(wire) {
  if (wire != DType::kF32 && wire != DType::kBF16)
    throw Error(ErrorKind::kConfig,
                std::string("gradients travel as fp32 or bf16, not ") + name(wire) + " (precision.reduce)");
  const auto buckets = store.buckets();
  bucket_sizes_.assign(buckets.size(), 0);
  for (const Parameter* p : store.parameters()) {
    if (!p->trainable) continue;
    std::size_t bucket = 0;
    while (p->flat_begin >= buckets[bucket].begin + buckets[bucket].count) ++bucket;
    index_[p] = rows_.size();
    rows_.push_back({p, bucket, false});
    ++bucket_sizes_[bucket];
  }
  missing_ = bucket_sizes_;
  if (wire == DType::kBF16 && mesh.shape().dp > 1 && !buckets.empty()) {
    std::int64_t largest = 0;
    for (const Bucket& b : buckets) largest = std::max(largest, b.count);
    for (Buffer& buffer : wire_buffers_)
      buffer = mesh.world().symmetric_buffer(device, static_cast<std::size_t>(largest) * size_of(wire));
  }
}

GradReducer::Row& GradReducer::row(const Parameter& p) {
  const auto found = index_.find(&p);
  if (found == index_.end())
    throw Error(ErrorKind::kLogic, p.name + " has no gradient: it is not a trained parameter of this store");
  return rows_[found->second];
}

void GradReducer::begin_step() {
  for (Row& r : rows_) r.written = false;
  watermark_ = rows_.size();
  micro_ = Micro::kEarlier;
}

void GradReducer::begin_micro(Micro which) {
  if (watermark_ != rows_.size())
    throw Error(ErrorKind::kLogic, "a new micro-batch begins, but the gradient of " +
                                       rows_[watermark_].parameter->name + " never became ready in the one before");
  micro_ = which;
  watermark_ = 0;
  missing_ = bucket_sizes_;
}

Write GradReducer::write_mode(const Parameter& p) {
  Row& r = row(p);
  const Write mode = r.written ? Write::kAccumulate : Write::kOverwrite;
  r.written = true;
  return mode;
}

void GradReducer::ready(const Parameter& p) {
  const Row& r = row(p);
  if (watermark_ >= rows_.size() || rows_[watermark_].parameter != &p)
    throw Error(ErrorKind::kLogic, "gradient of " + p.name + " became ready out of order: " +
                                       (watermark_ < rows_.size() ? rows_[watermark_].parameter->name + " is next"
                                                                  : std::string("all were ready")));
  if (!r.written)
    throw Error(ErrorKind::kLogic, "gradient of " + p.name + " became ready but was not written in this step");
  ++watermark_;
  const bool bucket_full = --missing_[r.bucket] == 0;
  if (micro_ == Micro::kLast && bucket_full && !p.tp_partial) reduce(r.bucket);
}

void GradReducer::reduce(std::size_t bucket) {
  if (mesh_.shape().dp == 1) return;
  const Bucket& b = store_.buckets()[bucket];
  Tensor all = store_.grads().flat(b.begin, b.count);
  Tensor wire;
  if (wire_ != DType::kF32) {
    if (pending_.size() == wire_buffers_.size()) complete_oldest();
    wire = Tensor(wire_buffers_[wire_turn_].data(), wire_, {b.count});
    wire_turn_ = (wire_turn_ + 1) % wire_buffers_.size();
    device_.ops().copy(wire, all);
    all = wire;
  }
  const bool sharded = store_.dp_shards() > 1;
  pending_.push_back(
      {bucket, wire,
       sharded ? mesh_.dp().reduce_scatter(all.flat(b.flat_shard_begin - b.begin, b.shard_count), all, ReduceOp::kSum)
               : mesh_.dp().all_reduce(all, ReduceOp::kSum)});
}

void GradReducer::complete_oldest() {
  Pending p = std::move(pending_.front());
  pending_.pop_front();
  p.work.wait();
  if (!p.wire.present()) return;
  const Bucket& b = store_.buckets()[p.bucket];
  const bool sharded = store_.dp_shards() > 1;
  const std::int64_t begin = sharded ? b.flat_shard_begin : b.begin, count = sharded ? b.shard_count : b.count;
  device_.ops().copy(store_.grads().flat(begin, count), p.wire.flat(begin - b.begin, count));
}

void GradReducer::finish() {
  if (watermark_ != rows_.size())
    throw Error(ErrorKind::kLogic,
                "the step ends, but the gradient of " + rows_[watermark_].parameter->name + " never became ready");
  if (micro_ != Micro::kLast) throw Error(ErrorKind::kLogic, "a step ends with a micro-batch that was not its last");
  const auto buckets = store_.buckets();
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (!buckets[i].tp_partial) continue;
    if (mesh_.shape().tp > 1)
      mesh_.tp().all_reduce(store_.grads().flat(buckets[i].begin, buckets[i].count), ReduceOp::kSum).wait();
    reduce(i);
  }
  while (!pending_.empty()) complete_oldest();
  micro_ = Micro::kEarlier;
}

}  // namespace drivetrain
