#include "runtime/checkpoint/checkpoint.h"

#include <fstream>
#include <limits>
#include <mutex>
#include <set>

#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/write_plan.h"
#include "runtime/comm/thread_comm.h"
#include "tests/runtime/checkpoint/small_model.h"
#include "tests/runtime/checkpoint/test_files.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;
using Notes = std::vector<std::pair<std::string, std::string>>;
using test::error_text;
using test::RankStore;
using test::small_options;
using test::TemporaryFolder;

struct Layout {
  int dp, tp;
};
constexpr Layout kLayouts[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};

TrainState state_at(std::int64_t step) {
  TrainState s;
  s.step = step;
  s.cursor = {3, 41};
  s.tokens = (std::int64_t{1} << 60) + 1;
  s.loss_scale = 0.1 + 0x1p-50;
  s.loss_scale_good_steps = 17;
  s.seed = ~std::uint64_t{0} - 4;
  s.total_steps = 1000;
  s.last_eval_step = -1;
  s.adam_step = step - 1;
  return s;
}

std::set<std::string> entries(const fs::path& folder) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename().string());
  return out;
}

class CheckpointTest : public ::testing::Test {
 protected:
  void save(Layout layout, std::int64_t step, std::int64_t keep = 0, const Notes& notes = {}) {
    run_thread_ranks(layout.dp * layout.tp, [&](Communicator& world) {
      RankStore rank(world, {layout.dp, layout.tp}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer));
      rank.fill();
      CheckpointFolder(folder_).save(state_at(step), rank.store(), rank.optimizer(), rank.mesh(), keep, notes);
    });
  }
  // The error that loading with this table gives, the same on every rank.
  std::string load_error(const fs::path& checkpoint, std::list<Parameter> table = test::small_table()) {
    std::vector<std::string> texts(2);
    run_thread_ranks(2, [&](Communicator& world) {
      RankStore rank(world, {2, 1}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer), table);
      texts[static_cast<std::size_t>(world.rank())] = error_text(
          ErrorKind::kData, [&] { load_checkpoint(checkpoint, rank.store(), rank.optimizer(), rank.mesh()); });
      for (const auto& [kind, shards] : rank.optimizer())
        for (const float x : shards.span<float>()) EXPECT_EQ(x, 0.0f);
    });
    EXPECT_EQ(texts[0], texts[1]);
    return texts[0];
  }
  // Loads on one rank and compares everything.
  void expect_loadable(const fs::path& checkpoint, std::int64_t step) {
    run_thread_ranks(1, [&](Communicator& world) {
      RankStore rank(world, {1, 1}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer));
      EXPECT_EQ(load_checkpoint(checkpoint, rank.store(), rank.optimizer(), rank.mesh()).step, step);
      EXPECT_TRUE(rank.holds_expected());
    });
  }
  TemporaryFolder run_;
  fs::path folder_ = run_ / "checkpoints";
};

// RS-07: whatever layout saved it, every layout gets the same bits back, moments included.
TEST_F(CheckpointTest, AnyLayoutLoadsAnyOther) {
  for (const Layout from : kLayouts) {
    save(from, 200);
    const auto found = CheckpointFolder(folder_).newest();
    ASSERT_TRUE(found);
    for (const Layout to : kLayouts) {
      for (const auto& options : {small_options(DType::kBF16, StoreOptions::Shard::kOptimizer),
                                  small_options(DType::kF32, StoreOptions::Shard::kOff)}) {
        run_thread_ranks(to.dp * to.tp, [&](Communicator& world) {
          RankStore rank(world, {to.dp, to.tp}, options);
          const TrainState s = load_checkpoint(*found, rank.store(), rank.optimizer(), rank.mesh());
          EXPECT_EQ(s.step, 200);
          if (options.compute == DType::kBF16)
            EXPECT_TRUE(rank.holds_expected()) << from.dp << "x" << from.tp << " -> " << to.dp << "x" << to.tp;
          else
            EXPECT_TRUE(rank.masters_expected()) << from.dp << "x" << from.tp << " -> " << to.dp << "x" << to.tp;
        });
      }
    }
  }
}

TEST_F(CheckpointTest, FilesAreTheSameAtEveryLayoutOfOneSize) {
  save({2, 2}, 1);
  std::map<std::string, std::string> first;
  for (const auto& f : read_manifest(folder_ / "step-000001").files) first[f.name] = f.xxh3_128;
  EXPECT_EQ(first.size(), 4u);
  save({4, 1}, 1);
  for (const auto& f : read_manifest(folder_ / "step-000001").files) EXPECT_EQ(first[f.name], f.xxh3_128) << f.name;
}

TEST_F(CheckpointTest, StateComesBackExactly) {
  save({1, 1}, 7, 0, {{"config", "{\"a\": 1}\n\xc3\xa9"}, {"fingerprint", ""}});
  TrainState s;
  run_thread_ranks(1, [&](Communicator& world) {
    RankStore rank(world, {1, 1}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer));
    s = load_checkpoint(folder_ / "step-000007", rank.store(), rank.optimizer(), rank.mesh());
  });
  const TrainState want = state_at(7);
  EXPECT_EQ(s.step, want.step);
  EXPECT_EQ(s.cursor.epoch, want.cursor.epoch);
  EXPECT_EQ(s.cursor.position, want.cursor.position);
  EXPECT_EQ(s.tokens, want.tokens);
  EXPECT_EQ(s.loss_scale, want.loss_scale);
  EXPECT_EQ(s.loss_scale_good_steps, want.loss_scale_good_steps);
  EXPECT_EQ(s.seed, want.seed);
  EXPECT_EQ(s.total_steps, want.total_steps);
  EXPECT_EQ(s.last_eval_step, want.last_eval_step);
  EXPECT_EQ(s.adam_step, want.adam_step);
  const CheckpointManifest m = read_manifest(folder_ / "step-000007");
  EXPECT_EQ(m.notes, (Notes{{"config", "{\"a\": 1}\n\xc3\xa9"}, {"fingerprint", ""}}));
  EXPECT_EQ(m.mesh.dp, 1);
}

TEST(Manifest, EveryDoubleComesBack) {
  TemporaryFolder folder;
  for (const double x : {0.0, 65536.0, 1.0 / 3.0, 5e-324, std::numeric_limits<double>::max(),
                         std::numeric_limits<double>::infinity()}) {
    CheckpointManifest m;
    m.state.loss_scale = x;
    write_manifest(folder.path(), m);
    write_done(folder.path());
    EXPECT_EQ(read_manifest(folder.path()).state.loss_scale, x);
  }
}

TEST(Manifest, NamesOfSteps) {
  EXPECT_EQ(checkpoint_name(200), "step-000200");
  EXPECT_EQ(checkpoint_name(12345678), "step-12345678");
  EXPECT_EQ(checkpoint_step("step-000200"), 200);
  EXPECT_EQ(checkpoint_step("step-12345678"), 12345678);
  for (const char* name : {"step-200", "step-", "step-00020x", "step--00001", "xstep-000200", "step-000200 ",
                           "../step-000200", "step-99999999999999999999", ""})
    EXPECT_EQ(checkpoint_step(name), -1) << name;
}

TEST_F(CheckpointTest, EachTensorIsInOneFileAndWorkIsBalanced) {
  save({4, 1}, 1);
  const CheckpointManifest m = read_manifest(folder_ / "step-000001");
  EXPECT_EQ(entries(folder_ / "step-000001"),
            (std::set<std::string>{"DONE", "manifest.json", "rank-00000.safetensors", "rank-00001.safetensors",
                                   "rank-00002.safetensors", "rank-00003.safetensors"}));
  std::vector<fs::path> paths;
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (const auto& f : m.files) {
    paths.push_back(folder_ / "step-000001" / f.name);
    least = std::min(least, f.bytes);
    most = std::max(most, f.bytes);
  }
  EXPECT_LT(most, least + least / 2);
  const auto all = open_tensor_files(paths);  // throws where a name is in two files
  EXPECT_EQ(all->names().size(), m.weights.size() + m.optimizer.at("m").size() + m.optimizer.at("v").size());
  EXPECT_EQ(m.optimizer.at("m").size(), m.weights.size() - 1);  // not for the frozen one
  for (const auto& [name, file] : m.weights) EXPECT_EQ(all->where(name), (folder_ / "step-000001" / file).string());
  EXPECT_EQ(all->find("m.c_attn.w")->shape, (std::vector<std::int64_t>{8, 15}));
}

TEST(WritePlan, BalancesLargeTensors) {
  std::vector<NamedTensor> tensors;
  for (const std::int64_t rows : {100, 40, 30, 30, 1}) {
    NamedTensor t;
    t.name = std::to_string(tensors.size());
    t.rows = rows;
    tensors.push_back(std::move(t));
  }
  tensors[4].trainable = false;
  const auto plan = plan_writes(tensors, 0, 2);
  ASSERT_EQ(plan.size(), 5u);
  std::int64_t load[2] = {0, 0};
  for (const auto& p : plan) load[p.owner] += tensors[p.tensor].rows;
  EXPECT_EQ(load[0] + load[1], 201);
  EXPECT_LE(std::abs(load[0] - load[1]), 1);
  EXPECT_EQ(plan_writes(tensors, 2, 2).size(), 5u + 4 + 4);
}

TEST_F(CheckpointTest, MoreRanksThanTensors) {
  std::list<Parameter> table;
  table.push_back(test::vector("bias", Split::kNone, {{6, "bias", 0, 6, false}}));
  run_thread_ranks(4, [&](Communicator& world) {
    RankStore rank(world, {4, 1}, small_options(DType::kF32, StoreOptions::Shard::kOptimizer), table);
    rank.fill();
    CheckpointFolder(folder_).save(state_at(1), rank.store(), rank.optimizer(), rank.mesh(), 1, {});
    RankStore other(world, {4, 1}, small_options(DType::kF32, StoreOptions::Shard::kOptimizer), table);
    load_checkpoint(folder_ / "step-000001", other.store(), other.optimizer(), other.mesh());
    EXPECT_TRUE(other.holds_expected());
  });
  EXPECT_EQ(read_manifest(folder_ / "step-000001").files.size(), 3u);
}

TEST_F(CheckpointTest, KeepsTheNewestAndLatest) {
  EXPECT_FALSE(CheckpointFolder(folder_).newest());
  for (const std::int64_t step : {1, 2, 3, 4}) save({2, 1}, step, 2);
  EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000003", "step-000004"}));
  EXPECT_EQ(test::read_bytes(folder_ / "latest"), "step-000004\n");
  save({2, 1}, 2, 1);  // after going back: the one just saved is never pruned
  EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000002"}));
  save({1, 1}, 5, 0);
  save({1, 1}, 6, 0);
  EXPECT_EQ(entries(folder_).size(), 4u);
  EXPECT_EQ(CheckpointFolder(folder_).newest(), folder_ / "step-000006");
}

// A damaged one must not take the place of the last good one beside `latest`.
TEST_F(CheckpointTest, IncompleteOnesAreNotCounted) {
  for (const std::int64_t step : {1, 2, 3}) save({1, 1}, step);
  fs::remove(folder_ / "step-000003" / "DONE");
  save({1, 1}, 4, 2);
  EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000002", "step-000003", "step-000004"}));
}

TEST_F(CheckpointTest, WhatCannotBeReadIsNotPassedOver) {
  test::write_bytes(folder_, "no folder");
  EXPECT_CONTAINS(error_text(ErrorKind::kIo, [&] { CheckpointFolder(folder_).newest(); }), "cannot list");
  fs::remove(folder_);
  save({1, 1}, 1);
  save({1, 1}, 2);
  fs::remove(folder_ / "step-000002" / "DONE");
  fs::create_symlink("DONE", folder_ / "step-000002" / "DONE");  // a link to itself: ELOOP, even for root
  EXPECT_CONTAINS(error_text(ErrorKind::kIo, [&] { CheckpointFolder(folder_).newest(); }), "step-000002/DONE");
}

TEST_F(CheckpointTest, SameStepIsReplaced) {
  save({2, 2}, 5, 3);
  save({1, 1}, 5, 3, {{"second", "yes"}});
  EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000005"}));
  EXPECT_EQ(read_manifest(folder_ / "step-000005").notes.size(), 1u);
  EXPECT_EQ(read_manifest(folder_ / "step-000005").files.size(), 1u);
  EXPECT_EQ(entries(folder_ / "step-000005").size(), 3u);
  expect_loadable(folder_ / "step-000005", 5);
}

TEST_F(CheckpointTest, NewestPassesOverWhatIsNotComplete) {
  save({2, 1}, 1);
  save({2, 1}, 2);
  save({2, 1}, 3);
  const CheckpointFolder checkpoints(folder_);
  test::write_bytes(folder_ / "latest", "step-000002\n");
  EXPECT_EQ(checkpoints.newest(), folder_ / "step-000002");
  for (const char* bad : {"", "../elsewhere", "step-000009\n", "step-2"}) {
    test::write_bytes(folder_ / "latest", bad);
    EXPECT_EQ(checkpoints.newest(), folder_ / "step-000003") << bad;
  }
  test::write_bytes(folder_ / "latest", "step-000003\n");
  fs::resize_file(folder_ / "step-000003" / "rank-00001.safetensors", 100);
  EXPECT_EQ(checkpoints.newest(), folder_ / "step-000002");
  fs::remove(folder_ / "step-000002" / "DONE");
  EXPECT_EQ(checkpoints.newest(), folder_ / "step-000001");
  std::ofstream(folder_ / "step-000001" / "manifest.json", std::ios::app) << " ";
  EXPECT_FALSE(checkpoints.newest());
}

TEST_F(CheckpointTest, DamageIsNamed) {
  save({2, 1}, 1);
  const fs::path checkpoint = folder_ / "step-000001", victim = checkpoint / "rank-00001.safetensors";
  const std::string good = test::read_bytes(victim);
  std::string bad = good;
  bad[bad.size() - 3] = static_cast<char>(bad[bad.size() - 3] ^ 1);
  test::write_bytes(victim, bad);
  EXPECT_CONTAINS(load_error(checkpoint), victim.string() + " is damaged");
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { open_checkpoint_weights(run_.path()); }), "is damaged");
  fs::remove(victim);
  EXPECT_CONTAINS(load_error(checkpoint), victim.string());
  test::write_bytes(victim, good);
  expect_loadable(checkpoint, 1);
  test::write_bytes(checkpoint / "manifest.json", test::read_bytes(checkpoint / "manifest.json") + " ");
  EXPECT_CONTAINS(load_error(checkpoint), "manifest.json is damaged");
  fs::remove(checkpoint / "DONE");
  EXPECT_CONTAINS(load_error(checkpoint), "no complete checkpoint");
  EXPECT_CONTAINS(load_error(folder_ / "step-000009"), "no complete checkpoint");
}

TEST_F(CheckpointTest, UnknownFormatIsRefusedNotSkipped) {
  save({1, 1}, 1);
  save({1, 1}, 2);
  const fs::path manifest = folder_ / "step-000002" / "manifest.json";
  std::string text = test::read_bytes(manifest);
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 9");
  test::write_bytes(manifest, text);
  write_done(folder_ / "step-000002");
  EXPECT_EQ(CheckpointFolder(folder_).newest(), folder_ / "step-000002");
  EXPECT_CONTAINS(load_error(folder_ / "step-000002"), "format 9 is not known");
}

// RS-13: nothing is loaded when a shape differs, in weights or in optimizer state.
TEST_F(CheckpointTest, OtherShapesAreRefused) {
  save({2, 1}, 1);
  std::list<Parameter> table = test::small_table();
  for (Parameter& p : table)
    if (p.name == "bias") p.blocks[0].rows = p.blocks[0].hf_rows = 16;
  table.push_back(test::vector("new", Split::kNone, {{2, "new", 0, 2, false}}));
  table.pop_front();
  const std::string text = load_error(folder_ / "step-000001", table);
  for (const char* prefix : {"", "m.", "v."}) {
    EXPECT_CONTAINS(text, "wrong shape: '" + std::string(prefix) + "bias' is [6]");
    EXPECT_CONTAINS(text, "missing: '" + std::string(prefix) + "new' [2]");
    EXPECT_CONTAINS(text, "unknown: '" + std::string(prefix) + "wte' [13, 8]");
  }
  EXPECT_CONTAINS(text, "the model needs [16]");
}

TEST_F(CheckpointTest, OtherOptimizersAreRefused) {
  save({1, 1}, 1);
  run_thread_ranks(1, [&](Communicator& world) {
    RankStore rank(world, {1, 1}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer));
    rank.optimizer()[0].first = "q";
    const std::string text = error_text(ErrorKind::kData, [&] {
      load_checkpoint(folder_ / "step-000001", rank.store(), rank.optimizer(), rank.mesh());
    });
    EXPECT_CONTAINS(text, "missing: the optimizer state 'q'");
    EXPECT_CONTAINS(text, "unknown: the optimizer state 'm'");
  });
}

TEST_F(CheckpointTest, WeightsOfARun) {
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { open_checkpoint_weights(run_.path()); }),
                  "no complete checkpoint");
  save({2, 2}, 1);
  save({2, 2}, 2);
  test::write_full(test::small_table(), run_ / "model.safetensors", "");
  const auto original = open_tensor_folder(run_.path());
  for (const fs::path& path : {run_.path(), folder_, folder_ / "step-000001", folder_ / "step-000001" / ""}) {
    const auto weights = open_checkpoint_weights(path);
    EXPECT_EQ(weights->names(), original->names());
    EXPECT_EQ(weights->find("m.wte"), nullptr);
    std::vector<float> a(13 * 8), b(13 * 8);
    weights->read("wte", 0, a);
    original->read("wte", 0, b);
    EXPECT_EQ(a, b);
  }
  EXPECT_EQ(find_checkpoint(run_.path()), folder_ / "step-000002");
  EXPECT_EQ(find_checkpoint(folder_ / "step-000001"), folder_ / "step-000001");
}

}  // namespace
}  // namespace drivetrain
