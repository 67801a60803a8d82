#include "runtime/config/nearest.h"

#include <gtest/gtest.h>

namespace drivetrain {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("luanch", "launch"), 1);  // a swap is one edit
  EXPECT_EQ(edit_distance("a", "b"), 1);
}

TEST(Nearest, SuggestsOnlyWhatIsNear) {
  EXPECT_EQ(nearest_word("Trian", {"train", "plan"}), "train");
  EXPECT_EQ(nearest_word("zzzz", {"train", "plan"}), "");
  EXPECT_EQ(nearest_word("", {"a"}), "a");
  EXPECT_EQ(nearest_word("x", {}), "");
}

}  // namespace
}  // namespace drivetrain
