#include "runtime/param_store.h"

#include <algorithm>

#include "kernels/ops.h"

namespace drivetrain {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 20;  // elements moved through the host at a time

std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

template <class T>
void upload_as(Device& device, Tensor dst, std::span<const float> src) {
  std::vector<T> staged;
  for (std::int64_t begin = 0; begin < dst.count(); begin += kChunk) {
    const auto part =
        src.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(kChunk, dst.count() - begin)));
    staged.resize(part.size());
    std::transform(part.begin(), part.end(), staged.begin(), [](float x) { return T(x); });
    device.upload(dst.flat(begin, static_cast<std::int64_t>(part.size())), std::as_bytes(std::span(staged)));
  }
}

template <class T>
void download_as(Device& device, std::span<float> dst, Tensor src) {
  std::vector<T> staged;
  for (std::int64_t begin = 0; begin < src.count(); begin += kChunk) {
    const auto part =
        dst.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(kChunk, src.count() - begin)));
    staged.resize(part.size());
    device.download(std::as_writable_bytes(std::span(staged)),
                    src.flat(begin, static_cast<std::int64_t>(part.size())));
    std::transform(staged.begin(), staged.end(), part.begin(), [](T x) { return static_cast<float>(x); });
  }
}

void upload_floats(Device& device, Tensor dst, std::span<const float> src) {
  if (dst.dtype == DType::kBF16) return upload_as<bf16>(device, dst, src);
  if (dst.dtype == DType::kF16) return upload_as<f16>(device, dst, src);
  device.upload(dst, std::as_bytes(src));
}

void download_floats(Device& device, std::span<float> dst, Tensor src) {
  if (dst.size() == 0) return;
  if (src.dtype == DType::kBF16) return download_as<bf16>(device, dst, src);
  if (src.dtype == DType::kF16) return download_as<f16>(device, dst, src);
  device.download(std::as_writable_bytes(dst), src);
}

void check_size(const Parameter& p, std::size_t size) {
  if (static_cast<std::int64_t>(size) != p.value.count())
    throw Error(ErrorKind::kLogic,
                p.name + ": " + std::to_string(size) + " values given for the local shape " + p.value.describe());
}

}  // namespace

void ParamStore::add(Parameter& p) {
  if (device_) throw Error(ErrorKind::kLogic, p.name + " was added to a parameter store that is laid out already");
  for (const Parameter* other : parameters_)
    if (other == &p || other->name == p.name)
      throw Error(ErrorKind::kLogic, "parameter " + p.name + " was added twice");
  parameters_.push_back(&p);
}

void ParamStore::materialize(Device& device, Mesh& mesh, const StoreOptions& options) {
  if (device_) throw Error(ErrorKind::kLogic, "a parameter store is laid out once");
  device_ = &device;
  mesh_ = &mesh;
  options_ = options;
  dp_shards_ = options.shard == StoreOptions::Shard::kOptimizer ? mesh.shape().dp : 1;
  lay_out();
  allocate();
}

// Fills buckets in flat order; a parameter is never cut by a bucket, so a large one makes a large bucket.
void ParamStore::lay_out() {
  const std::int64_t limit = static_cast<std::int64_t>(options_.bucket_bytes / sizeof(float));
  std::int64_t end = 0;
  const auto close = [&] {
    if (buckets_.empty()) return;
    Bucket& b = buckets_.back();
    end = b.begin + round_up(end - b.begin, kAlign * dp_shards_);
    b.count = end - b.begin;
    b.shard_count = b.count / dp_shards_;
    b.flat_shard_begin = b.begin + b.shard_count * dp_shard();
    b.shard_begin = shard_count_;
    shard_count_ += b.shard_count;
  };
  for (const bool tp_partial : {false, true}) {
    bool fresh = true;
    for (Parameter* p : parameters_) {
      if (!p->trainable || p->tp_partial != tp_partial) continue;
      const std::int64_t n = round_up(local_count(*p, mesh_->shape().tp), kAlign);
      if (fresh || end + n - buckets_.back().begin > limit) {
        close();
        buckets_.push_back(Bucket{.begin = end, .tp_partial = tp_partial});
        fresh = false;
      }
      p->flat_begin = end;
      end += n;
    }
  }
  close();
  trained_count_ = end;
  for (Parameter* p : parameters_) {
    if (p->trainable) continue;
    p->flat_begin = end;
    end += round_up(local_count(*p, mesh_->shape().tp), kAlign);
  }
  value_count_ = end;
}

void ParamStore::allocate() {
  const auto bytes = [](std::int64_t n, DType dtype) { return static_cast<std::size_t>(n) * size_of(dtype); };
  const auto flat = [](const Buffer& buffer, DType dtype, std::int64_t n) {
    return Tensor(buffer.data(), dtype, {n});
  };
  Ops& ops = device_->ops();
  if (value_count_ > 0) {
    value_buffer_ = mesh_->world().symmetric_buffer(*device_, bytes(value_count_, options_.compute));
    values_ = flat(value_buffer_, options_.compute, value_count_);
    ops.zero(values_);
  }
  if (trained_count_ > 0) {
    grad_buffer_ = mesh_->world().symmetric_buffer(*device_, bytes(trained_count_, DType::kF32));
    grads_ = flat(grad_buffer_, DType::kF32, trained_count_);
    ops.zero(grads_);
    if (options_.compute == DType::kF32 && dp_shards_ == 1) {
      master_ = values_.flat(0, trained_count_);
    } else {
      master_buffer_ = Buffer(*device_, bytes(shard_count_, DType::kF32));
      master_ = flat(master_buffer_, DType::kF32, shard_count_);
      ops.zero(master_);
    }
  }
  const int tp = mesh_->shape().tp;
  for (Parameter* p : parameters_) {
    const auto view = [&](Tensor all) {
      const Tensor t = all.flat(p->flat_begin, local_count(*p, tp));
      return p->vector ? t : t.reshape({local_row_count(*p, tp), local_col_count(*p, tp)});
    };
    p->value = view(values_);
    p->grad = p->trainable ? view(grads_) : Tensor();
  }
}

int ParamStore::dp_shard() const {
  return dp_shards_ == 1 ? 0 : mesh_->dp_rank();
}

const Bucket& ParamStore::bucket_of(const Parameter& p) const {
  const auto after = std::upper_bound(buckets_.begin(), buckets_.end(), p.flat_begin,
                                      [](std::int64_t at, const Bucket& b) { return at < b.begin; });
  return *(after - 1);
}

OwnedRange ParamStore::owned(const Parameter& p, int shard) const {
  if (!p.trainable) return {};
  const Bucket& b = bucket_of(p);
  const std::int64_t slice_begin = b.begin + b.shard_count * shard;
  const std::int64_t begin = std::max(p.flat_begin, slice_begin);
  const std::int64_t end = std::min(p.flat_begin + p.value.count(), slice_begin + b.shard_count);
  if (begin >= end) return {};
  return {begin - p.flat_begin, end - begin, b.shard_begin + begin - slice_begin};
}

Tensor ParamStore::owned_view(const Parameter& p, Tensor shards, int shard) const {
  const OwnedRange r = owned(p, shard);
  return shards.flat(r.shard_begin, r.count);
}

void ParamStore::write(const Parameter& p, std::span<const float> local) {
  check_size(p, local.size());
  upload_floats(*device_, p.value, local);
  if (p.trainable && master_buffer_.bytes() > 0) scatter_shards(p, master_, local);
  device_->ops().weights_changed();
}

void ParamStore::read_master(const Parameter& p, std::span<float> local) {
  check_size(p, local.size());
  if (p.trainable)
    gather_shards(p, master_, local);
  else
    download_floats(*device_, local, p.value);
}

// Each owner broadcasts its part: exact, and no buffer of the size of a parameter.
void ParamStore::gather_shards(const Parameter& p, Tensor shards, std::span<float> local) {
  check_size(p, local.size());
  if (dp_shards_ == 1) return download_floats(*device_, local, owned_view(p, shards, 0));
  const Buffer staging(*device_, static_cast<std::size_t>(std::min(kChunk, p.value.count())) * sizeof(float));
  for (int shard = 0; shard < dp_shards_; ++shard) {
    const OwnedRange r = owned(p, shard);
    for (std::int64_t at = 0; at < r.count; at += kChunk) {
      const std::int64_t n = std::min(kChunk, r.count - at);
      const Tensor part =
          shard == dp_shard() ? shards.flat(r.shard_begin + at, n) : staging.tensor(DType::kF32).flat(0, n);
      mesh_->dp().broadcast(part, shard).wait();
      download_floats(*device_, local.subspan(static_cast<std::size_t>(r.begin + at), static_cast<std::size_t>(n)),
                      part);
    }
  }
}

void ParamStore::scatter_shards(const Parameter& p, Tensor shards, std::span<const float> local) {
  check_size(p, local.size());
  const OwnedRange r = owned(p, dp_shard());
  if (r.count > 0)
    upload_floats(*device_, shards.flat(r.shard_begin, r.count),
                  local.subspan(static_cast<std::size_t>(r.begin), static_cast<std::size_t>(r.count)));
}

}  // namespace drivetrain
