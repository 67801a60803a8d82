// The smallest model that has everything the step loop cares about: embedding, linear with bias, activation, dropout,
// head and loss, on one tensor rank. For tests of the loop; models/ has the real ones.
#pragma once
#include <cstdint>
#include <functional>

#include "runtime/model.h"

namespace drivetrain::test {

class TinyModel final : public Model {
 public:
  struct Options {
    std::int64_t vocab = 16, dim = 8;
    DType compute = DType::kF32;
    float dropout = 0;
    // Asked before every micro-batch; true: its first logit becomes NaN.
    std::function<bool()> poison = [] { return false; };
  };
  TinyModel(Device& device, Mesh& mesh, const Options& options, const StoreOptions& store);

  ParamStore& store() override { return store_; }
  std::string description() const override { return "tiny"; }
  void forward_backward(Tensor loss_sum, const Batch& batch, StepContext& ctx) override;
  void evaluate(Tensor loss_sum, const Batch& batch, Arena& arena) override;
  std::vector<float> logits(std::span<const std::int32_t>, KvCache*, Rows, Arena&) override;
  std::unique_ptr<KvCache> make_cache(std::int64_t) override { return nullptr; }
  std::int64_t parameter_count() const override;
  std::int64_t vocab_size() const override { return options_.vocab; }
  std::int64_t max_positions() const override { return 1 << 20; }

  static Arena make_arena(Device& device) { return Arena(Buffer(device, std::size_t{1} << 20)); }

 private:
  struct Acts {
    Tensor x, y, z, logits, stats;  // (M, C), (M, C), (M, C), (M, V), (M, 3)
  };
  Acts forward(Tensor loss_sum, const Batch& batch, Arena& arena, Dropout dropout);

  Device& device_;
  Options options_;
  Parameter embedding_, weight_, bias_, head_;
  ParamStore store_;
};

}  // namespace drivetrain::test
