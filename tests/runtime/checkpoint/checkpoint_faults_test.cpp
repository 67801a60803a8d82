// Saves that are killed, fail on one rank, or run out of disk: the checkpoint before must stay the one that counts.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/comm/thread_comm.h"
#include "tests/runtime/checkpoint/small_model.h"
#include "tests/runtime/checkpoint/test_files.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;
using test::error_text;
using test::RankStore;
using test::small_options;
using test::TemporaryFolder;

TrainState state_at(std::int64_t step) {
  TrainState s;
  s.step = step;
  return s;
}

std::set<std::string> entries(const fs::path& folder) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename().string());
  return out;
}

// Runs body in a child process and returns its wait status.
template <class Body>
int in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

class CheckpointFaults : public ::testing::Test {
 protected:
  // Saves on dp = ranks with an observer made for each rank; collects the error text of every rank ("" for none).
  std::vector<std::string> save(int ranks, std::int64_t step, const std::function<SaveObserver(int)>& observer,
                                const std::function<void(int)>& before = {}) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    run_thread_ranks(ranks, [&](Communicator& world) {
      RankStore rank(world, {ranks, 1}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer));
      rank.fill();
      if (before) before(world.rank());
      world.barrier();
      try {
        CheckpointFolder(folder_, observer ? observer(world.rank()) : SaveObserver())
            .save(state_at(step), rank.store(), rank.optimizer(), rank.mesh(), 3, {});
      } catch (const Error& e) {
        texts[static_cast<std::size_t>(world.rank())] = std::string(name(e.kind())) + ": " + e.what();
      }
    });
    return texts;
  }
  void expect_newest(std::int64_t step) {
    const auto newest = CheckpointFolder(folder_).newest();
    ASSERT_TRUE(newest);
    EXPECT_EQ(newest->filename(), checkpoint_name(step));
    run_thread_ranks(2, [&](Communicator& world) {
      RankStore rank(world, {1, 2}, small_options(DType::kBF16, StoreOptions::Shard::kOptimizer));
      EXPECT_EQ(load_checkpoint(*newest, rank.store(), rank.optimizer(), rank.mesh()).step, step);
      EXPECT_TRUE(rank.holds_expected());
    });
  }
  TemporaryFolder run_;
  fs::path folder_ = run_ / "checkpoints";
};

// RS-01: kill -9 at every stage of a save.
TEST_F(CheckpointFaults, KilledInsideASave) {
  const std::vector<std::string> fine(2);
  ASSERT_EQ(save(2, 1, {}), fine);
  for (const SaveStage fatal :
       {SaveStage::kFolderMade, SaveStage::kTensorWritten, SaveStage::kFileSynced, SaveStage::kManifestWritten,
        SaveStage::kDoneWritten, SaveStage::kRenamed, SaveStage::kLatestReplaced, SaveStage::kPruned}) {
    fs::remove_all(folder_ / "step-000002");
    test::write_bytes(folder_ / "latest", "step-000001\n");
    const int status = in_child([&] {
      save(2, 2, [&](int) {
        return [fatal](SaveStage stage) {
          if (stage == fatal) ::kill(::getpid(), SIGKILL);
        };
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    EXPECT_EQ(entries(folder_).contains(".tmp-step-000002"), fatal < SaveStage::kRenamed);
    EXPECT_EQ(entries(folder_).contains("step-000002"), fatal >= SaveStage::kRenamed);
    expect_newest(fatal < SaveStage::kLatestReplaced ? 1 : 2);
    // The half-written one is replaced when the run comes by again, whatever it held.
    fs::create_directory(folder_ / ".tmp-step-000002");
    test::write_bytes(folder_ / ".tmp-step-000002" / "rank-00007.safetensors", "of more ranks");
    ASSERT_EQ(save(2, 2, {}), fine);
    EXPECT_EQ(entries(folder_ / "step-000002"),
              (std::set<std::string>{"DONE", "manifest.json", "rank-00000.safetensors", "rank-00001.safetensors"}));
    EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000001", "step-000002"}));
    expect_newest(2);
  }
}

// The same while a checkpoint of that very step is replaced: one of the two is always there.
TEST_F(CheckpointFaults, KilledWhileReplacingTheOnlyCheckpoint) {
  ASSERT_EQ(save(1, 1, {}), std::vector<std::string>(1));
  for (const SaveStage fatal : {SaveStage::kDoneWritten, SaveStage::kRenamed, SaveStage::kLatestReplaced}) {
    const int status = in_child([&] {
      save(1, 1, [&](int) {
        return [fatal](SaveStage stage) {
          if (stage == fatal) ::kill(::getpid(), SIGKILL);
        };
      });
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    expect_newest(1);
  }
}

TEST_F(CheckpointFaults, OneRankThatFailsFailsAll) {
  ASSERT_EQ(save(3, 1, {}), std::vector<std::string>(3));
  for (const SaveStage stage : {SaveStage::kTensorWritten, SaveStage::kFileSynced}) {
    const auto texts = save(3, 2, [&](int rank) -> SaveObserver {
      if (rank != 1) return {};
      return [stage](SaveStage now) {
        if (now == stage) throw Error(ErrorKind::kIo, "cannot write rank-00001: I/O error");
      };
    });
    for (const std::string& text : texts) EXPECT_EQ(text, "io: rank 1 of 3: cannot write rank-00001: I/O error");
    EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000001"}));
    expect_newest(1);
  }
  for (const SaveStage stage : {SaveStage::kFolderMade, SaveStage::kManifestWritten, SaveStage::kDoneWritten}) {
    const auto texts = save(3, 2, [&](int) -> SaveObserver {
      return [stage](SaveStage now) {
        if (now == stage) throw Error(ErrorKind::kIo, "no");
      };
    });
    for (const std::string& text : texts) EXPECT_EQ(text, "io: rank 0 of 3: no");
    EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000001"}));
  }
}

TEST_F(CheckpointFaults, FileSizeLimit) {
  ASSERT_EQ(save(2, 1, {}), std::vector<std::string>(2));
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) ::_exit(2);
    for (const std::string& text : save(2, 2, {})) {
      if (text.find("io: rank 0 of 2: cannot write ") != 0 || text.find("rank-00000.safetensors") == text.npos ||
          text.find("more bytes, the file system has") == text.npos)
        ::_exit(3);
    }
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(entries(folder_), (std::set<std::string>{"latest", "step-000001"}));
  expect_newest(1);
}

// A file system that is really full, where the process may mount one.
TEST_F(CheckpointFaults, DiskFull) {
  fs::create_directory(folder_);
  constexpr int kNotAllowed = 77;
  const int status = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder_.c_str(), "tmpfs", 0, "size=40k") != 0)
      ::_exit(kNotAllowed);
    if (save(2, 1, {}) != std::vector<std::string>(2)) ::_exit(2);
    for (const std::string& text : save(2, 2, {})) {
      if (text.find("io: rank ") != 0 || text.find("No space left on device; it needs ") == text.npos ||
          text.find("/checkpoints/.tmp-step-000002/rank-0000") == text.npos) {
        ::write(2, text.data(), text.size());
        ::_exit(3);
      }
    }
    if (entries(folder_) != std::set<std::string>{"latest", "step-000001"}) ::_exit(4);
    expect_newest(1);
    if (::testing::Test::HasFailure()) ::_exit(5);
  });
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotAllowed) GTEST_SKIP() << "this process may not mount a file system";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(CheckpointFaults, FolderThatCannotBeMade) {
  test::write_bytes(folder_, "a file in the way");
  for (const std::string& text : save(2, 1, {})) {
    EXPECT_CONTAINS(text, "rank 0 of 2");
    EXPECT_CONTAINS(text, folder_.string());
  }
}

}  // namespace
}  // namespace drivetrain
