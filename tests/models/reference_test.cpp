// Loss, logits, every gradient and ten AdamW steps of tiny models against transformers and PyTorch (tests/golden).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "kernels/cpu/cpu_device.h"
#include "models/hf_weights.h"
#include "models/transformer.h"
#include "runtime/comm/thread_comm.h"
#include "runtime/optim/adamw.h"
#include "tests/models/golden.h"

namespace drivetrain {
namespace {

constexpr double kRelative = 1e-5;

// A key bias moves all scores of a query almost alike, and the softmax ignores that: its gradient is what is left of
// sums that cancel. Adam then divides such a remainder by its own size, which shows its rounding in full.
double slack(const std::string& name) {
  return name.ends_with("k_proj.bias") ? 50 : 1;
}

// A model of one rank, loaded from a fixture's folder.
class Rank {
 public:
  Rank(Communicator& world, const std::filesystem::path& folder, DType compute)
      : device_(make_cpu_device(1)),
        mesh_(world.split(0, world.rank()), {1, world.size()}),
        config_(read_hf_config(folder)),
        model_(*device_, mesh_, {config_, compute}),
        arena_(mesh_.world().symmetric_buffer(*device_, 16 << 20)) {
    model_.store().materialize(*device_, mesh_, {compute});
    load_model_weights(model_.store(), mesh_, config_, folder);
    device_->ops().weights_changed();
    grads_ = std::make_unique<GradReducer>(model_.store(), mesh_, *device_, DType::kF32);
    loss_ = Buffer(*device_, 4096);
  }

  // Mean loss; gradients of the mean loss are in the store afterwards.
  double forward_backward(const golden::Case& c) {
    const auto scope = arena_.scope();
    const std::vector<std::int64_t> keys(c.ids.size(), 0);
    const Batch batch{put(DType::kI32, c, std::as_bytes(std::span(c.ids))),
                      put(DType::kI32, c, std::as_bytes(std::span(c.targets))),
                      put(DType::kI32, c, std::as_bytes(std::span(c.positions))),
                      put(DType::kI32, c, std::as_bytes(std::span(c.doc_starts))),
                      put(DType::kI64, c, std::as_bytes(std::span(keys)))};
    Tensor loss_sum(loss_.data(), DType::kF64, {1});
    device_->ops().zero(loss_sum);
    grads_->begin_step();
    grads_->begin_micro(GradReducer::Micro::kLast);
    StepContext ctx{arena_, *grads_, static_cast<float>(1.0 / static_cast<double>(c.target_count)), 0};
    model_.forward_backward(loss_sum, batch, ctx);
    grads_->finish();
    double loss = 0;
    device_->download(std::as_writable_bytes(std::span(&loss, 1)), loss_sum);
    return loss / static_cast<double>(c.target_count);
  }

  // A block of a whole parameter (tp = 1) as the tensor of its file.
  static void add_to_file_tensors(std::map<std::string, std::vector<float>>& out, const Parameter& p,
                                  std::span<const float> whole) {
    std::int64_t row = 0;
    for (const Block& b : p.blocks) {
      auto& tensor = out[b.hf_name];
      tensor.resize(static_cast<std::size_t>(b.hf_rows * p.cols));
      for (std::int64_t r = 0; r < b.rows; ++r, ++row)
        for (std::int64_t c = 0; c < p.cols; ++c) {
          const std::int64_t at =
              b.transposed ? c * b.hf_rows + b.hf_row_begin + r : (b.hf_row_begin + r) * p.cols + c;
          tensor[static_cast<std::size_t>(at)] = whole[static_cast<std::size_t>(row * p.cols + c)];
        }
    }
  }
  std::map<std::string, std::vector<float>> gradients() {
    std::map<std::string, std::vector<float>> out;
    for (const Parameter* p : model_.store().parameters()) add_to_file_tensors(out, *p, p->grad.span<float>());
    return out;
  }
  std::map<std::string, std::vector<float>> masters() {
    std::map<std::string, std::vector<float>> out;
    for (const Parameter* p : model_.store().parameters()) {
      std::vector<float> local(static_cast<std::size_t>(p->value.count()));
      model_.store().read_master(*p, local);
      add_to_file_tensors(out, *p, local);
    }
    return out;
  }

  Transformer& model() { return model_; }
  Arena& arena() { return arena_; }
  Device& device() { return *device_; }
  Mesh& mesh() { return mesh_; }

 private:
  Tensor put(DType dtype, const golden::Case& c, std::span<const std::byte> bytes) {
    Tensor t = arena_.take(dtype, {c.batch, c.seq});
    device_->upload(t, bytes);
    return t;
  }
  std::unique_ptr<Device> device_;
  Mesh mesh_;
  ModelConfig config_;
  Transformer model_;
  Arena arena_;
  std::unique_ptr<GradReducer> grads_;
  Buffer loss_;
};

class Reference : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("reference_" + GetParam() + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    fixture_.write_folder(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  golden::Fixture fixture_{GetParam()};
  std::filesystem::path folder_;
};

void expect_close(std::span<const float> ours, std::span<const float> golden, double absolute) {
  ASSERT_EQ(ours.size(), golden.size());
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    worst = std::max(worst, std::abs(double(ours[i]) - double(golden[i])));
  EXPECT_LT(worst, absolute);
}

TEST_P(Reference, LogitsWithAndWithoutCacheAtEveryTp) {
  const golden::Case c = fixture_.load_case("plain");
  for (const int tp : {1, 2})
    run_thread_ranks(tp, [&](Communicator& world) {
      Rank rank(world, folder_, DType::kF32);
      const auto seq = static_cast<std::size_t>(c.seq);
      for (std::size_t b = 0; b < static_cast<std::size_t>(c.batch); ++b) {
        const std::span ids(c.ids.data() + b * seq, seq);
        const std::span golden(c.logits.data() + b * seq * c.vocab, seq * c.vocab);
        expect_close(rank.model().logits(ids, nullptr, Model::Rows::kAll, rank.arena()), golden, 1e-4);
        const auto cache = rank.model().make_cache(c.seq);
        auto cached = rank.model().logits(ids.first(seq / 2), cache.get(), Model::Rows::kAll, rank.arena());
        for (std::size_t t = seq / 2; t < seq; ++t) {
          const auto row = rank.model().logits(ids.subspan(t, 1), cache.get(), Model::Rows::kLast, rank.arena());
          cached.insert(cached.end(), row.begin(), row.end());
        }
        expect_close(cached, golden, 1e-4);
      }
    });
}

TEST_P(Reference, LossAndEveryGradient) {
  run_thread_ranks(1, [&](Communicator& world) {
    Rank rank(world, folder_, DType::kF32);
    for (const std::string name : {"plain", "masked", "packed"}) {
      const golden::Case c = fixture_.load_case(name);
      EXPECT_NEAR(rank.forward_backward(c), c.loss, kRelative * c.loss) << name;
      const auto gradients = rank.gradients();
      for (const golden::Weight& w : fixture_.weights()) {
        ASSERT_TRUE(gradients.contains(w.name)) << w.name;
        EXPECT_LT(fixture_.gradient(name, w.name).distance(gradients.at(w.name)), kRelative) << name << " " << w.name;
      }
      EXPECT_EQ(gradients.size(), fixture_.weights().size());
    }
  });
}

TEST_P(Reference, TenAdamWSteps) {
  const golden::Training t = fixture_.training();
  run_thread_ranks(1, [&](Communicator& world) {
    Rank rank(world, folder_, DType::kF32);
    AdamW optimizer(rank.device(), rank.model().store(), rank.mesh(),
                    {t.beta1, t.beta2, t.eps, t.weight_decay, t.clip});
    for (std::int64_t s = 0; s < t.steps; ++s) {
      const golden::Case c = fixture_.load_case(t.cases[static_cast<std::size_t>(s) % t.cases.size()]);
      const auto i = static_cast<std::size_t>(s);
      EXPECT_NEAR(rank.forward_backward(c), t.losses[i], kRelative * t.losses[i]) << "step " << s;
      EXPECT_NEAR(optimizer.step(t.lr, 1.0).grad_norm, t.grad_norms[i], 3e-5 * t.grad_norms[i]) << "step " << s;
    }
    const auto masters = rank.masters();
    for (const golden::Weight& w : fixture_.weights())
      EXPECT_LT(fixture_.final_weight(w.name).distance(masters.at(w.name)), 1e-4 * slack(w.name)) << w.name;
  });
}

// BF16 against an f32 run on weights rounded to BF16: what is left is the rounding of activations.
TEST_P(Reference, Bf16IsCloseToFloatOnRoundedWeights) {
  const golden::Case c = fixture_.load_case("bf16");
  run_thread_ranks(1, [&](Communicator& world) {
    Rank rank(world, folder_, DType::kBF16);
    EXPECT_NEAR(rank.forward_backward(c), c.loss, 1e-2 * c.loss);
    const auto gradients = rank.gradients();
    for (const golden::Weight& w : fixture_.weights())
      EXPECT_LT(fixture_.gradient("bf16", w.name).distance(gradients.at(w.name)), slack(w.name) > 1 ? 0.3 : 0.1)
          << w.name;
  });
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Reference, ::testing::ValuesIn(golden::fixture_names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace drivetrain
