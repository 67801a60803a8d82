#include "runtime/data/synthetic_dataset.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/error.h"

namespace drivetrain {
namespace {

struct Row {
  explicit Row(std::size_t n) : ids(n), targets(n), positions(n), doc_starts(n, -1) {}
  Sample sample() { return {ids, targets, positions, doc_starts}; }
  std::vector<std::int32_t> ids, targets, positions, doc_starts;
};

TEST(SyntheticDataset, FillsSequencesWithOneDocumentOfRandomIds) {
  constexpr std::int64_t kLength = 500, kVocab = 17;
  const auto data = make_synthetic_dataset({.seq_len = kLength, .vocab = kVocab, .samples = 40, .seed = 3});
  EXPECT_EQ(data->size(), 40);
  EXPECT_EQ(data->tokens(), 40 * kLength);
  Row row(kLength), other(kLength);
  std::set<std::int32_t> seen;
  for (std::int64_t index = 0; index < data->size(); ++index) {
    data->read(index, row.sample());
    EXPECT_EQ(data->target_count(index), kLength);
    for (std::size_t t = 0; t < kLength; ++t) {
      ASSERT_TRUE(row.ids[t] >= 0 && row.ids[t] < kVocab);
      ASSERT_TRUE(row.targets[t] >= 0 && row.targets[t] < kVocab);
      if (t > 0) {
        ASSERT_EQ(row.ids[t], row.targets[t - 1]);
      }
      ASSERT_EQ(row.positions[t], static_cast<std::int32_t>(t));
      ASSERT_EQ(row.doc_starts[t], 0);
      seen.insert(row.ids[t]);
    }
    data->read(index, other.sample());
    EXPECT_EQ(row.ids, other.ids);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kVocab));
  data->read(0, row.sample());
  data->read(1, other.sample());
  EXPECT_NE(row.ids, other.ids);
  make_synthetic_dataset({.seq_len = kLength, .vocab = kVocab, .samples = 40, .seed = 4})->read(0, other.sample());
  EXPECT_NE(row.ids, other.ids);
}

TEST(SyntheticDataset, RefusesNoTokens) {
  EXPECT_THROW(make_synthetic_dataset({.seq_len = 0, .vocab = 5}), Error);
  EXPECT_THROW(make_synthetic_dataset({.seq_len = 5, .vocab = 0}), Error);
}

}  // namespace
}  // namespace drivetrain
