#include "runtime/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace drivetrain {
namespace {

ProgressPoint point(std::int64_t step) {
  ProgressPoint p;
  p.step = step;
  p.total = 100;
  p.loss = 2.34567;
  p.lr = 2e-4;
  p.grad_norm = 0.98765;
  p.tokens_per_s = 1234.5;
  return p;
}

TEST(Progress, DurationsAreShort) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(192), "3m12s");
  EXPECT_EQ(duration_text(7500), "2h05m");
  EXPECT_EQ(duration_text(3 * 86400 + 4 * 3600), "3d04h");
}

TEST(Progress, ALineSaysWhatIsKnown) {
  ProgressPoint p = point(20);
  EXPECT_EQ(progress_text(p), "step 20/100, loss 2.3457, lr 2.00e-04, norm 0.988, 1234 tokens/s");
  p.mfu = 0.4125;
  p.left_s = 192;
  EXPECT_EQ(progress_text(p),
            "step 20/100, loss 2.3457, lr 2.00e-04, norm 0.988, 1234 tokens/s, MFU 41.2 %, 3m12s left");
}

TEST(Progress, PlainLinesHaveNoControlCharacters) {
  std::ostringstream out;
  Progress progress(out, Progress::Mode::kLines, 10);
  for (int step = 1; step <= 100; ++step) progress.show(point(step));
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
  EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](unsigned char c) { return c == '\n' || std::isprint(c); }));
}

TEST(Progress, EvaluationsAndSkippedStepsAlwaysGetALine) {
  std::ostringstream out;
  Progress progress(out, Progress::Mode::kLines, 1000);
  ProgressPoint p = point(3);
  p.eval_loss = 0;
  progress.show(p);
  p = point(4);
  p.skipped_reason = "no targets";
  progress.show(p);
  progress.show(point(5));
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_NE(text.find("held-out loss 0.0000 (perplexity 1.00)"), std::string::npos);
  EXPECT_NE(text.find("update skipped: no targets"), std::string::npos);
}

TEST(Progress, ABarRedrawsItsLineAndEndsIt) {
  std::ostringstream out;
  Progress progress(out, Progress::Mode::kBar, 1);
  ProgressPoint p = point(50);
  p.left_s = 86400;
  progress.show(p);
  progress.show(point(100));
  const std::string text = out.str();
  EXPECT_EQ(text.front(), '\r');
  EXPECT_NE(text.find("[#####.....] 50/100"), std::string::npos);
  EXPECT_NE(text.find("[##########] step 100/100"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 2);
  EXPECT_EQ(text.back(), '\n');
  // The shorter second line covers the first one.
  const auto second = text.rfind('\r');
  EXPECT_GE(text.size() - second - 2, second - 1);
}

TEST(Progress, ABarNeverWraps) {
  std::ostringstream out;
  Progress progress(out, Progress::Mode::kBar, 1, 40);
  progress.show(point(50));
  EXPECT_EQ(out.str().size(), 1u + 39u);
}

TEST(Progress, OffIsSilent) {
  std::ostringstream out;
  Progress progress(out, Progress::Mode::kOff, 1);
  progress.show(point(100));
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, AutoNeedsATerminalForABar) {
  EXPECT_EQ(progress_mode("auto", 0), Progress::Mode::kLines);
  EXPECT_EQ(progress_mode("auto", 80), Progress::Mode::kBar);
  EXPECT_EQ(progress_mode("bar", 0), Progress::Mode::kBar);
  EXPECT_EQ(progress_mode("lines", 80), Progress::Mode::kLines);
  EXPECT_EQ(progress_mode("off", 80), Progress::Mode::kOff);
}

}  // namespace
}  // namespace drivetrain
