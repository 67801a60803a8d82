// Flat storage of all parameters: values (compute dtype), gradients (f32) and the FP32 master, in the order in which
// backward produces gradients, so that a bucket is a contiguous slice and readiness is one watermark.
//
// Flat order: parameters as added (backward order) without tp_partial ones, then the tp_partial ones in buckets of
// their own. Each parameter starts on a 64-element boundary; each bucket's length is a multiple of dp * 64 elements,
// so that its dp slices are equal. With sharding (ZeRO-1), data rank r owns slice r of every bucket: `master` (and the
// optimizer's moments) hold the owned slices, bucket after bucket. Without sharding the shard is everything.
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

class ParamStore {
 public:
  // In the order backward produces gradients. The parameter outlives the store.
  void add(Parameter& p);
  // Allocates (values and gradients as symmetric memory of the world) and sets every parameter's views. Collective.
  void materialize(Device& device, Mesh& mesh, const StoreOptions& options);

  std::span<Parameter* const> parameters() const { return parameters_; }
  std::span<const Bucket> buckets() const { return buckets_; }
  const StoreOptions& options() const { return options_; }
  Tensor values() const { return values_; }  // flat, compute dtype, whole
  Tensor grads() const { return grads_; }    // flat, f32, whole
  Tensor master() const { return master_; }  // f32, owned slices; with compute f32 and no sharding a view of values
  // Elements of one owned-slice buffer (master, m, v).
  std::int64_t shard_count() const { return shard_count_; }
  int dp_shards() const { return dp_shards_; }

  // Host float values of the local (row-major, padding rows included) part of p -> value (rounded) and master (exact).
  void write(const Parameter& p, std::span<const float> local);
  // The inverse at master precision; collective over dp. `local` receives local_count elements.
  void read_master(const Parameter& p, std::span<float> local);
  // Any owned-slice buffer (master, m, v): whole local parameter, collective over dp / the owned overlap, not collective.
  void gather_shards(const Parameter& p, Tensor shards, std::span<float> local);
  void scatter_shards(const Parameter& p, Tensor shards, std::span<const float> local);

  std::size_t value_bytes() const { return value_buffer_.bytes(); }
  std::size_t grad_bytes() const { return grad_buffer_.bytes(); }
  std::size_t master_bytes() const { return master_buffer_.bytes(); }

 private:
  Device* device_ = nullptr;
  Mesh* mesh_ = nullptr;
  StoreOptions options_;
  std::vector<Parameter*> parameters_;
  std::vector<Bucket> buckets_;
  Buffer value_buffer_, grad_buffer_, master_buffer_;
  Tensor values_, grads_, master_;
  std::int64_t shard_count_ = 0;
  int dp_shards_ = 1;
};

}  // namespace drivetrain
