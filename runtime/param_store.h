// Flat storage of all parameters: values (compute dtype), gradients (f32) and the FP32 master, in the order in which
// backward produces gradients, so that a bucket is a contiguous slice and readiness is one watermark.
//
// Flat order: parameters as added (backward order) without tp_partial ones, then the tp_partial ones in buckets of
// their own. Each parameter starts on a 64-element boundary; each bucket's length is a multiple of dp * 64 elements,
// so that its dp slices are equal. With sharding (ZeRO-1), data rank r owns slice r of every bucket: `master` (and the
// optimizer's moments) hold the owned slices, bucket after bucket. Without sharding the shard is everything.
// Parameters that are not trainable follow the last bucket, in values only: no gradient, no master, no moments.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/buffer.h"
#include "runtime/mesh.h"
#include "runtime/parameter.h"

namespace drivetrain {

// Optimizer state beside the parameters, one owned-slice buffer (f32) per kind ("m", "v").
using StateTensors = std::vector<std::pair<std::string, Tensor>>;

struct StoreOptions {
  DType compute = DType::kBF16;
  enum class Shard { kOff, kOptimizer } shard = Shard::kOptimizer;
  std::size_t bucket_bytes = 25u << 20;  // of f32 gradient
};

struct Bucket {
  std::int64_t begin = 0, count = 0;  // in the flat buffers
  std::int64_t shard_begin = 0,
               shard_count = 0;       // owned slice: flat [begin + slice, ...), and where it lies in master
  std::int64_t flat_shard_begin = 0;  // first flat element of the owned slice
  bool tp_partial = false;
};

// What one data shard owns of a parameter.
struct OwnedRange {
  std::int64_t begin = 0, count = 0;  // elements of the flattened local parameter; count 0: nothing
  std::int64_t shard_begin = 0;       // where they lie in an owned-slice buffer (master, m, v)
};

class ParamStore {
 public:
  static constexpr std::int64_t kAlign = 64;  // elements

  // In the order backward produces gradients. The parameter outlives the store.
  void add(Parameter& p);
  // Allocates (values and gradients as symmetric memory of the world) and sets every parameter's views. Collective.
  void materialize(Device& device, Mesh& mesh, const StoreOptions& options);

  std::span<Parameter* const> parameters() const { return parameters_; }
  std::span<const Bucket> buckets() const { return buckets_; }
  const StoreOptions& options() const { return options_; }
  Device& device() const { return *device_; }  // after materialize
  Tensor values() const { return values_; }    // flat, compute dtype, whole; the buckets, then what is not trained
  Tensor grads() const { return grads_; }      // flat, f32, whole
  Tensor master() const { return master_; }    // f32, owned slices; with compute f32 and no sharding a view of values
  // Elements of one owned-slice buffer (master, m, v).
  std::int64_t shard_count() const { return shard_count_; }
  int dp_shards() const { return dp_shards_; }
  int dp_shard() const;  // of this rank; 0 when everything is owned by everybody
  OwnedRange owned(const Parameter& p, int shard) const;

  // Host float values of the local (row-major, padding rows included) part of p -> value (rounded) and master (exact).
  void write(const Parameter& p, std::span<const float> local);
  // The inverse at master precision (value precision when not trainable); collective over dp when sharded. `local`
  // receives local_count elements.
  void read_master(const Parameter& p, std::span<float> local);
  // Any owned-slice buffer (master, m, v): whole local parameter, collective over dp / the owned overlap, not collective.
  void gather_shards(const Parameter& p, Tensor shards, std::span<float> local);
  void scatter_shards(const Parameter& p, Tensor shards, std::span<const float> local);

  std::size_t value_bytes() const { return value_buffer_.bytes(); }
  std::size_t grad_bytes() const { return grad_buffer_.bytes(); }
  std::size_t master_bytes() const { return master_buffer_.bytes(); }

 private:
  void lay_out();
  void allocate();
  const Bucket& bucket_of(const Parameter& p) const;
  Tensor owned_view(const Parameter& p, Tensor shards, int shard) const;

  Device* device_ = nullptr;
  Mesh* mesh_ = nullptr;
  StoreOptions options_;
  std::vector<Parameter*> parameters_;
  std::vector<Bucket> buckets_;
  Buffer value_buffer_, grad_buffer_, master_buffer_;
  Tensor values_, grads_, master_;
  std::int64_t value_count_ = 0, trained_count_ = 0, shard_count_ = 0;
  int dp_shards_ = 1;
};

}  // namespace drivetrain
