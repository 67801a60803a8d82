#include "runtime/checkpoint/param_io.h"

#include <sys/resource.h>

#include <csignal>

#include "runtime/comm/thread_comm.h"
#include "tests/runtime/checkpoint/small_model.h"
#include "tests/runtime/checkpoint/test_files.h"

namespace drivetrain {
namespace {

using test::error_text;
using test::RankStore;
using test::small_options;
using test::small_table;
using test::TemporaryFolder;

bool nothing(const std::string&) {
  return false;
}

std::int64_t resident_file_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::int64_t kib = 0;
  while (status >> word && word != "RssFile:") {
  }
  status >> kib;
  return kib * 1024;
}

class ParamIoTest : public ::testing::Test {
 protected:
  void SetUp() override { test::write_full(small_table(), folder_ / "model.safetensors", ""); }
  std::unique_ptr<TensorSource> source() const { return open_tensor_folder(folder_.path()); }
  TemporaryFolder folder_;
};

TEST_F(ParamIoTest, ReadsEveryLocalPart) {
  const auto tensors = source();
  for (const Parameter& p : small_table()) {
    for (const int tp : {1, 2, 4}) {
      for (int tp_rank = 0; tp_rank < tp; ++tp_rank) {
        std::vector<float> local(static_cast<std::size_t>(local_count(p, tp)), 99.0f);
        read_local(p, *tensors, tp, tp_rank, local);
        EXPECT_EQ(local, test::expected_local(p, "", tp, tp_rank)) << p.name << " tp " << tp << " rank " << tp_rank;
      }
    }
  }
}

TEST_F(ParamIoTest, ReadLocalRefuses) {
  Parameter p = small_table().front();
  std::vector<float> local(static_cast<std::size_t>(local_count(p, 1)));
  EXPECT_CONTAINS(error_text(ErrorKind::kLogic, [&] { read_local(p, *source(), 2, 0, local); }), "head");
  p.blocks[0].hf_rows = 14;
  const std::string shape = error_text(ErrorKind::kData, [&] { read_local(p, *source(), 1, 0, local); });
  EXPECT_CONTAINS(shape, "[13, 8]");
  EXPECT_CONTAINS(shape, "[14, 8]");
  p.blocks[0].hf_name = "absent";
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { read_local(p, *source(), 1, 0, local); }), "'absent'");
}

// CK-13: all that is wrong, at once.
TEST_F(ParamIoTest, CheckListsEveryFault) {
  std::list<Parameter> table = small_table();
  ParamStore store;
  for (Parameter& p : table) store.add(p);
  check_tensors(store, *source(), nothing);

  const auto changed =
      rename_tensors(source(), {{"q", "extra"}, {"down", ""}, {"k", "norm"}, {"norm", "k"}, {"bias", "h.0.mask"}});
  const std::string text = error_text(ErrorKind::kData, [&] { check_tensors(store, *changed, nothing); });
  EXPECT_CONTAINS(text, "missing: 'q' [8, 8]");
  EXPECT_CONTAINS(text, "missing: 'down' [6, 8]");
  EXPECT_CONTAINS(text, "missing: 'bias' [6]");
  EXPECT_CONTAINS(
      text, "wrong shape: 'k' is [8] in " + (folder_ / "model.safetensors").string() + ", the model needs [4, 8]");
  EXPECT_CONTAINS(text, "wrong shape: 'norm' is [4, 8]");
  EXPECT_CONTAINS(text, "unknown: 'extra' [8, 8]");
  EXPECT_CONTAINS(text, "unknown: 'h.0.mask'");
  EXPECT_FALSE(test::contains(text, "'v'"));
  const std::string less = error_text(ErrorKind::kData, [&] {
    check_tensors(store, *changed, [](const std::string& name) { return name.ends_with("mask"); });
  });
  EXPECT_FALSE(test::contains(less, "mask"));
  EXPECT_CONTAINS(less, "'extra'");
}

TEST_F(ParamIoTest, FullTensorsHaveTheShapesOfTheFile) {
  std::list<Parameter> table = small_table();
  ParamStore store;
  for (Parameter& p : table) store.add(p);
  const auto tensors = source();
  const std::vector<FullTensor> full = full_tensors(store);
  EXPECT_EQ(full.size(), tensors->names().size());
  for (const FullTensor& t : full) EXPECT_EQ(t.shape, tensors->find(t.name)->shape) << t.name;
}

TEST_F(ParamIoTest, ContradictingTablesAreRefused) {
  const auto refused = [](std::vector<Block> blocks) {
    Parameter p = test::matrix("p", 4, Split::kRows, std::move(blocks));
    ParamStore store;
    store.add(p);
    return error_text(ErrorKind::kLogic, [&] { full_tensors(store); });
  };
  EXPECT_CONTAINS(refused({{3, "t", 0, 6, false}}), "end at row 3 of 6");
  EXPECT_CONTAINS(refused({{3, "t", 0, 6, false}, {2, "t", 4, 6, false}}), "holes at row 3");
  EXPECT_CONTAINS(refused({{3, "t", 0, 6, false}, {4, "t", 2, 6, false}}), "overlap");
  EXPECT_CONTAINS(refused({{3, "t", 0, 6, false}, {3, "t", 3, 6, true}}), "differently");
}

struct Layout {
  int dp, tp;
};
constexpr Layout kLayouts[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}};

// CK-04 and CK-10: what is exported has no padding, no slices, and is what was loaded.
TEST_F(ParamIoTest, LoadsAndExportsAtEveryLayout) {
  for (const auto [dp, tp] : kLayouts) {
    for (const auto shard : {StoreOptions::Shard::kOff, StoreOptions::Shard::kOptimizer}) {
      const std::filesystem::path out = folder_ / "out";
      run_thread_ranks(dp * tp, [&](Communicator& world) {
        RankStore rank(world, {dp, tp}, small_options(DType::kBF16, shard));
        rank.fill();
        for (Parameter& p : rank.table())
          rank.store().write(p, std::vector<float>(rank.expected(p, "").size(), 9.0f));
        load_values(rank.store(), rank.mesh(), *source());
        EXPECT_TRUE(rank.holds_expected()) << dp << " x " << tp;
        export_weights(rank.store(), rank.mesh(), out, FileDType::kF32);
      });
      const auto exported = open_tensor_folder(out);
      const auto original = source();
      EXPECT_EQ(exported->names(), original->names());
      for (const std::string& name : original->names()) {
        ASSERT_EQ(exported->find(name)->shape, original->find(name)->shape) << name;
        std::vector<float> a(static_cast<std::size_t>(original->find(name)->count())), b(a.size());
        original->read(name, 0, a);
        exported->read(name, 0, b);
        if (name == "frozen") std::transform(a.begin(), a.end(), a.begin(), [](float x) { return float(bf16(x)); });
        EXPECT_EQ(a, b) << name << " " << dp << " x " << tp;
      }
      EXPECT_FALSE(std::filesystem::exists(out / ".tmp-model.safetensors"));
    }
  }
  EXPECT_EQ(SafetensorsFile(folder_ / "out" / "model.safetensors").metadata().at("format"), "pt");
}

TEST_F(ParamIoTest, ExportsInSixteenBits) {
  for (const FileDType dtype : {FileDType::kBF16, FileDType::kF16}) {
    run_thread_ranks(2, [&](Communicator& world) {
      RankStore rank(world, {1, 2}, small_options(DType::kF32, StoreOptions::Shard::kOff));
      rank.fill();
      export_weights(rank.store(), rank.mesh(), folder_ / "out", dtype);
    });
    const auto exported = open_tensor_folder(folder_ / "out");
    const auto original = source();
    for (const std::string& name : original->names()) {
      EXPECT_EQ(exported->find(name)->dtype, dtype);
      std::vector<float> a(static_cast<std::size_t>(original->find(name)->count())), b(a.size());
      original->read(name, 0, a);
      exported->read(name, 0, b);
      for (float& x : a) x = dtype == FileDType::kBF16 ? float(bf16(x)) : float(f16(x));
      EXPECT_EQ(a, b) << name;
    }
  }
}

TEST_F(ParamIoTest, ExportToHalfRefusesWhatOverflows) {
  const std::string text = error_text(ErrorKind::kNumeric, [&] {
    run_thread_ranks(2, [&](Communicator& world) {
      RankStore rank(world, {1, 2}, small_options(DType::kF32, StoreOptions::Shard::kOff));
      rank.fill();
      std::vector<float> local = rank.expected(rank.table().front(), "");
      local[3] = 70000.0f;
      rank.store().write(rank.table().front(), local);
      export_weights(rank.store(), rank.mesh(), folder_ / "out", FileDType::kF16);
    });
  });
  EXPECT_CONTAINS(text, "element 3 of 'wte' is 70000");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "out"));
}

// A parameter larger than what is moved at a time.
TEST_F(ParamIoTest, LargeTensorsMoveInPortions) {
  std::list<Parameter> table;
  table.push_back(test::matrix("rows", 700, Split::kRows, {{3201, "rows", 0, 3201, false}}));
  table.push_back(test::matrix("turned", 2200, Split::kCols, {{1001, "turned", 0, 1001, true}}));
  run_thread_ranks(2, [&](Communicator& world) {
    RankStore rank(world, {1, 2}, small_options(DType::kF32, StoreOptions::Shard::kOff), table);
    rank.fill();
    export_weights(rank.store(), rank.mesh(), folder_ / "out", FileDType::kF32);
  });
  const auto exported = open_tensor_folder(folder_ / "out");
  for (const char* name : {"rows", "turned"}) {
    std::vector<float> values(static_cast<std::size_t>(exported->find(name)->count()));
    exported->read(name, 0, values);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], test::element("", name, static_cast<std::int64_t>(i))) << name << " " << i;
  }
}

// The pages of a mapped file count as resident memory: they must not pile up beside the copies made of them.
TEST_F(ParamIoTest, ReadingALargeFileStaysSmallInMemory) {
  std::list<Parameter> table;
  for (const char* name : {"a", "b", "c", "d"}) {
    table.push_back(test::matrix(name, 2048, Split::kCols, {{2048, name, 0, 2048, name[0] == 'd'}}));  // 16 MiB each
  }
  test::write_full(table, folder_ / "large.safetensors", "");
  const auto large = open_tensor_files({folder_ / "large.safetensors"});
  std::vector<float> local(2048 * 1024);
  const std::int64_t before_bytes = resident_file_bytes();
  for (const Parameter& p : table) read_local(p, *large, 2, 1, local);
  EXPECT_LT(resident_file_bytes() - before_bytes, 4 << 20);
  std::vector<float> all(2048 * 2048);
  for (const Parameter& p : table) {
    large->read(p.name, 0, all);
    EXPECT_EQ(all[5], test::element("", p.name, 5));
  }
  EXPECT_LT(resident_file_bytes() - before_bytes, 4 << 20);
}

// One rank alone cannot read: nobody hangs, all say the same.
TEST_F(ParamIoTest, FailureOnOneRankFailsAll) {
  test::write_full({small_table().front()}, folder_ / "part.safetensors", "");
  std::array<std::string, 2> texts;
  run_thread_ranks(2, [&](Communicator& world) {
    RankStore rank(world, {2, 1}, small_options(DType::kF32, StoreOptions::Shard::kOptimizer));
    const auto good = world.rank() == 0 ? source() : open_tensor_files({folder_ / "part.safetensors"});
    texts[static_cast<std::size_t>(world.rank())] =
        error_text(ErrorKind::kData, [&] { load_values(rank.store(), rank.mesh(), *good); });
  });
  EXPECT_CONTAINS(texts[0], "rank 1 of 2: the tensor 'q'");
  EXPECT_EQ(texts[0], texts[1]);
}

TEST_F(ParamIoTest, ExportToAFullDiskLeavesTheOldFile) {
  const std::filesystem::path out = folder_ / "out";
  std::filesystem::create_directory(out);
  test::write_bytes(out / "model.safetensors", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{2000, before.rlim_max};
  const std::string text = error_text(ErrorKind::kIo, [&] {
    run_thread_ranks(2, [&](Communicator& world) {
      RankStore rank(world, {1, 2}, small_options(DType::kF32, StoreOptions::Shard::kOff));
      rank.fill();
      if (world.rank() == 0) {
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
      }
      world.barrier();
      export_weights(rank.store(), rank.mesh(), out, FileDType::kF32);
    });
  });
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_CONTAINS(text, ".tmp-model.safetensors");
  EXPECT_CONTAINS(text, "more bytes, the file system has");
  EXPECT_EQ(test::read_bytes(out / "model.safetensors"), "old");
  EXPECT_FALSE(std::filesystem::exists(out / ".tmp-model.safetensors"));
}

}  // namespace
}  // namespace drivetrain
