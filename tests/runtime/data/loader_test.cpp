#include "runtime/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "kernels/error.h"
#include "kernels/ops.h"

namespace drivetrain {
namespace {

// Sample i is T times the id i, with i % T targets missing.
class CountingDataset final : public Dataset {
 public:
  explicit CountingDataset(std::int64_t size, std::int64_t bad = -1) : size_(size), bad_(bad) {}
  std::int64_t size() const override { return size_; }
  std::int64_t seq_len() const override { return 3; }
  std::int64_t tokens() const override { return 3 * size_; }
  std::int64_t target_count(std::int64_t index) const override { return 3 - index % 3; }
  std::string report() const override { return ""; }
  void read(std::int64_t index, Sample out) const override {
    if (index == bad_) throw Error(ErrorKind::kIo, "sample " + std::to_string(index) + " is gone");
    for (std::int64_t t = 0; t < 3; ++t) {
      const auto i = static_cast<std::size_t>(t);
      out.ids[i] = static_cast<std::int32_t>(index);
      out.targets[i] = t < index % 3 ? Ops::kIgnore : static_cast<std::int32_t>(index);
      out.positions[i] = static_cast<std::int32_t>(t);
      out.doc_starts[i] = 0;
    }
  }

 private:
  std::int64_t size_, bad_;
};

struct Shape {
  std::int64_t size, global, micro;
  int dp = 1;
  int workers = 0;
  bool shuffle = true;
};

std::unique_ptr<Loader> loader(const Shape& s, int dp_rank = 0) {
  return make_loader(std::make_shared<CountingDataset>(s.size), {.global = s.global,
                                                                 .micro = s.micro,
                                                                 .dp = s.dp,
                                                                 .dp_rank = dp_rank,
                                                                 .seed = 11,
                                                                 .shuffle = s.shuffle,
                                                                 .workers = s.workers});
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}

// The samples of the next window of every data rank.
std::vector<std::int64_t> window_samples(std::vector<std::unique_ptr<Loader>>& ranks) {
  std::vector<std::int64_t> all;
  for (auto& rank : ranks) {
    const StepBatch step = rank->next();
    all.insert(all.end(), step.sample_ids.begin(), step.sample_ids.end());
  }
  return all;
}

TEST(Loader, DealsPositionsAsDocumented) {
  auto rank = loader({.size = 24, .global = 12, .micro = 2, .dp = 3, .shuffle = false}, 1);
  const StepBatch step = rank->next();
  ASSERT_EQ(step.micro.size(), 2u);
  EXPECT_EQ(step.sample_ids, (std::vector<std::int64_t>{2, 3, 8, 9}));
  EXPECT_EQ(step.micro[1].ids, (std::vector<std::int32_t>{8, 8, 8, 9, 9, 9}));
  EXPECT_EQ(step.micro[1].row_keys, (std::vector<std::int64_t>{24, 25, 26, 27, 28, 29}));
  EXPECT_EQ(step.micro[1].positions, (std::vector<std::int32_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(step.samples, 12);
  EXPECT_EQ(step.target_count, 1 + 3 + 1 + 3);
  EXPECT_EQ(step.window_target_count, 4 * (3 + 2 + 1));
  EXPECT_EQ(step.next.position, 12);
}

TEST(Loader, RowKeysCountOnInTheNextEpoch) {
  auto rank = loader({.size = 4, .global = 4, .micro = 4, .shuffle = false});
  rank->next();
  EXPECT_EQ(rank->cursor().epoch, 1);
  EXPECT_EQ(rank->next().micro[0].row_keys.front(), (1 * 4 + 0) * 3);
}

// TR-05
TEST(Loader, KeepsTheShortWindowAtTheEndOfAnEpoch) {
  auto rank = loader({.size = 6, .global = 4, .micro = 1});
  EXPECT_EQ(rank->steps_per_epoch(), 2);
  EXPECT_EQ(rank->next().micro.size(), 4u);
  const StepBatch last = rank->next();
  EXPECT_EQ(last.micro.size(), 2u);
  EXPECT_EQ(last.samples, 2);
  std::int64_t targets = 0;
  for (const std::int64_t i : last.sample_ids) targets += 3 - i % 3;
  EXPECT_EQ(last.window_target_count, targets);
  EXPECT_EQ(rank->cursor().epoch, 1);
  EXPECT_EQ(rank->cursor().position, 0);
}

// TR-08
TEST(Loader, UnevenDataGivesEveryRankTheSameMicroBatchesAndEverySampleOnce) {
  for (const int dp : {2, 4}) {
    std::vector<std::unique_ptr<Loader>> ranks;
    for (int r = 0; r < dp; ++r) ranks.push_back(loader({.size = 7, .global = dp, .micro = 1, .dp = dp}, r));
    std::vector<std::int64_t> seen;
    for (std::int64_t step = 0; step < ranks[0]->steps_per_epoch(); ++step) {
      std::set<std::size_t> micros;
      for (auto& rank : ranks) {
        const StepBatch batch = rank->next();
        micros.insert(batch.micro.size());
        seen.insert(seen.end(), batch.sample_ids.begin(), batch.sample_ids.end());
        if (batch.sample_ids.empty()) {
          EXPECT_EQ(batch.target_count, 0);
          EXPECT_EQ(batch.micro[0].targets, std::vector<std::int32_t>(3, Ops::kIgnore));
          EXPECT_EQ(batch.micro[0].doc_starts, (std::vector<std::int32_t>{0, 1, 2}));
        }
      }
      EXPECT_EQ(micros, std::set<std::size_t>{1});
    }
    EXPECT_EQ(sorted(seen), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6})) << dp;
  }
}

// TR-25
TEST(Loader, CountsUpdatesFromEpochs) {
  auto rank = loader({.size = 100, .global = 16, .micro = 2, .dp = 2});
  EXPECT_EQ(rank->steps_per_epoch(), 7);
  int updates = 0;
  while (rank->cursor().epoch < 3) {
    rank->next();
    ++updates;
  }
  EXPECT_EQ(updates, 21);
}

TEST(Loader, TheLayoutDoesNotChangeTheWindows) {
  std::vector<std::vector<std::unique_ptr<Loader>>> layouts;
  for (const Shape& shape :
       {Shape{.size = 45, .global = 16, .micro = 2, .dp = 1}, Shape{.size = 45, .global = 16, .micro = 4, .dp = 2},
        Shape{.size = 45, .global = 16, .micro = 1, .dp = 4},
        Shape{.size = 45, .global = 16, .micro = 2, .dp = 2, .workers = 2}}) {
    auto& ranks = layouts.emplace_back();
    for (int r = 0; r < shape.dp; ++r) ranks.push_back(loader(shape, r));
  }
  for (int step = 0; step < 10; ++step) {
    const auto expected = sorted(window_samples(layouts[0]));
    for (std::size_t i = 1; i < layouts.size(); ++i) EXPECT_EQ(sorted(window_samples(layouts[i])), expected) << step;
  }
}

// RS-04
TEST(Loader, SeekContinuesTheUnbrokenOrder) {
  for (const int workers : {0, 1, 3}) {
    const Shape shape{.size = 10, .global = 3, .micro = 1, .workers = workers};
    auto unbroken = loader(shape);
    std::vector<Cursor> at;
    std::vector<std::vector<std::int64_t>> ids;
    while (unbroken->cursor().epoch < 3) {
      at.push_back(unbroken->cursor());
      ids.push_back(unbroken->next().sample_ids);
    }
    ASSERT_EQ(ids.size(), 12u);
    EXPECT_NE(ids[0], ids[4]);  // epochs differ
    auto resumed = loader(shape);
    for (std::size_t from = 0; from < at.size(); ++from) {
      resumed->seek(at[from]);
      EXPECT_EQ(resumed->cursor().position, at[from].position);
      for (std::size_t i = from; i < std::min(from + 3, ids.size()); ++i)
        EXPECT_EQ(resumed->next().sample_ids, ids[i]);
    }
  }
}

TEST(Loader, RefusesACursorOutsideTheData) {
  auto rank = loader({.size = 10, .global = 2, .micro = 1, .workers = 1});
  EXPECT_THROW(rank->seek({0, 11}), Error);
  EXPECT_THROW(rank->seek({-1, 0}), Error);
  rank->seek({2, 10});
  EXPECT_EQ(rank->cursor().epoch, 3);
  EXPECT_EQ(rank->cursor().position, 0);
}

TEST(Loader, RefusesAGlobalBatchThatDoesNotDivide) {
  EXPECT_THROW(loader({.size = 10, .global = 6, .micro = 2, .dp = 2}), Error);
  EXPECT_THROW(loader({.size = 10, .global = 2, .micro = 2, .dp = 2}), Error);
  EXPECT_THROW(loader({.size = 0, .global = 2, .micro = 2}), Error);
}

TEST(Loader, AnErrorOfAWorkerReachesTheCallerAtItsWindow) {
  for (const int workers : {0, 2}) {
    auto rank = make_loader(
        std::make_shared<CountingDataset>(8, 5),
        {.global = 2, .micro = 1, .dp = 1, .dp_rank = 0, .seed = 1, .shuffle = false, .workers = workers});
    EXPECT_EQ(rank->next().sample_ids, (std::vector<std::int64_t>{0, 1}));
    EXPECT_EQ(rank->next().sample_ids, (std::vector<std::int64_t>{2, 3}));
    for (int again = 0; again < 2; ++again) {
      try {
        rank->next();
        FAIL();
      } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "sample 5 is gone");
      }
      EXPECT_EQ(rank->cursor().position, 4);
    }
    rank->seek({0, 6});
    EXPECT_EQ(rank->next().sample_ids, (std::vector<std::int64_t>{6, 7}));
  }
}

TEST(Loader, ManyWorkersKeepTheOrder) {
  auto direct = loader({.size = 101, .global = 4, .micro = 2});
  auto ahead = loader({.size = 101, .global = 4, .micro = 2, .workers = 4});
  for (int step = 0; step < 300; ++step) {
    const StepBatch a = direct->next(), b = ahead->next();
    ASSERT_EQ(a.sample_ids, b.sample_ids);
    ASSERT_EQ(a.micro[0].row_keys, b.micro[0].row_keys);
    ASSERT_EQ(direct->cursor().position, ahead->cursor().position);
  }
}

}  // namespace
}  // namespace drivetrain
