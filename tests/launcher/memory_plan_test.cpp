// The plan is what is allocated, class by class, and what the arena's peak comes to.
#include "launcher/memory_plan.h"

#include <gtest/gtest.h>

#include "kernels/cpu/cpu_device.h"
#include "launcher/build_rank.h"
#include "models/init.h"
#include "runtime/batch_buffer.h"
#include "runtime/comm/thread_comm.h"

namespace drivetrain {
namespace {

struct Layout {
  int dp, tp;
  const char* recompute;
  const char* preset;
};

class Plan : public ::testing::TestWithParam<Layout> {};

Config config_of(const Layout& layout) {
  Config c;
  c.device = "cpu";
  c.model.preset = layout.preset;
  c.model.override_ = {{"layers", "3"},   {"dim", "64"},  {"heads", "4"},
                       {"kv_heads", "4"}, {"ffn", "128"}, {"vocab", "97"}};
  c.data.tokenizer = "bytes";
  c.data.seq_len = 32;
  c.batch.micro = 2;
  c.parallel.tp = layout.tp;
  c.memory.recompute = layout.recompute;
  c.steps = 1;
  return c;
}

TEST_P(Plan, EqualsWhatIsAllocatedAndUsed) {
  const Layout layout = GetParam();
  const Config config = config_of(layout);
  run_thread_ranks(layout.dp * layout.tp, [&](Communicator& world) {
    RankObjects rank = build_rank(config, world.split(0, world.rank()), TransformerOptions::Use::kTraining);
    GradReducer grads(rank.model->store(), *rank.mesh, *rank.device, rank.setup.wire);
    AdamW optimizer(*rank.device, rank.model->store(), *rank.mesh, rank.setup.optimizer);
    EXPECT_EQ(rank.plan.weight_bytes, rank.model->store().value_bytes());
    EXPECT_EQ(rank.plan.gradient_bytes, rank.model->store().grad_bytes());
    EXPECT_EQ(rank.plan.optimizer_bytes, rank.model->store().master_bytes() + optimizer.moment_bytes());
    EXPECT_EQ(rank.plan.activation_bytes, rank.arena->capacity_bytes());

    init_parameters(rank.model->store(), *rank.mesh, 1);
    rank.device->ops().weights_changed();
    const auto n = static_cast<std::size_t>(rank.setup.micro_batch * rank.setup.seq_len);
    HostBatch host;
    host.ids.assign(n, 1);
    host.targets.assign(n, 2);
    host.positions.assign(n, 0);
    host.doc_starts.assign(n, 0);
    host.row_keys.assign(n, 0);
    host.target_count = static_cast<std::int64_t>(n);
    BatchBuffer batches(*rank.device, rank.setup.micro_batch, rank.setup.seq_len);
    Buffer loss(*rank.device, sizeof(double));
    Tensor loss_sum(loss.data(), DType::kF64, {1});
    rank.device->ops().zero(loss_sum);
    grads.begin_step();
    grads.begin_micro(GradReducer::Micro::kLast);
    StepContext ctx{*rank.arena, grads, 1.0f, 1};
    rank.model->forward_backward(loss_sum, batches.upload(host), ctx);
    EXPECT_EQ(rank.plan.activation_bytes, rank.arena->peak_bytes());
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, Plan,
                         ::testing::Values(Layout{1, 1, "none", "llama-tiny"},
                                           Layout{2, 1, "selective", "llama-tiny"},
                                           Layout{1, 2, "full", "llama-tiny"}, Layout{2, 2, "none", "gpt2-124m"},
                                           Layout{1, 4, "selective", "gpt2-124m"}));

TEST(MemoryPlan, RecomputeShrinksActivations) {
  // GPT-2 124M, 512 tokens a rank: what `drivetrain plan` answers for the benchmark shape.
  Config c;
  c.model.preset = "gpt2-124m";
  c.data.seq_len = 256;
  c.batch.micro = 2;
  const auto device = make_cpu_device(1);
  std::size_t none = 0;
  for (const char* recompute : {"none", "selective", "full"}) {
    c.memory.recompute = recompute;
    const MemoryPlan plan = plan_memory(set_up_run(c, 2), device->ops());
    if (std::string(recompute) == "none") none = plan.activation_bytes;
    const bool full = std::string(recompute) == "full";
    EXPECT_LE(plan.activation_bytes, full ? none * 35 / 100 : none);
    EXPECT_EQ(plan.parameters, 124439808);
  }
}

}  // namespace
}  // namespace drivetrain
