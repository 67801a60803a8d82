#include "runtime/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

std::filesystem::path fresh_file(const std::string& file) {
  const auto path = std::filesystem::path(testing::TempDir()) / file;
  std::filesystem::remove(path);
  return path;
}
std::string contents(const std::filesystem::path& file) {
  std::ostringstream s;
  s << std::ifstream(file).rdbuf();
  return s.str();
}
MetricsRow row(std::int64_t step) {
  return {.step = step, .loss = 2.5, .tokens = step * 64};
}

TEST(Metrics, KeysAreStable) {
  const MetricsRow r{
      .step = 3,
      .loss = 2.5,
      .lr = 1e-4,
      .grad_norm = 0.5,
      .tokens = 6144,
      .tokens_per_s = 2048,
      .mfu = 0.25,
      .step_ms = 1000,
      .samples = 16,
      .targets = 2000,
      .data_wait_ms = 0.125,
      .loss_scale = 1,
  };
  EXPECT_EQ(
      to_json(r),
      "{\"step\": 3, \"loss\": 2.5, \"lr\": 1e-04, \"grad_norm\": 0.5, \"tokens\": 6144, \"tokens_per_s\": 2048, "
      "\"mfu\": 0.25, \"step_ms\": 1000, \"samples\": 16, \"targets\": 2000, \"data_wait_ms\": 0.125, "
      "\"loss_scale\": 1, \"skipped\": 0}");
}

TEST(Metrics, NumbersReadBackAsTheSameBits) {
  for (const double x : {1.0 / 3, 0.1 + 0.2, 1e-300, 123456789.123456789, 5e-324}) {
    MetricsRow r = row(1);
    r.loss = x;
    const std::string text = to_json(r);
    EXPECT_EQ(std::strtod(text.c_str() + text.find("\"loss\": ") + 8, nullptr), x);
  }
}

TEST(Metrics, WhatIsNotANumberIsNull) {
  MetricsRow r = row(1);
  r.loss = std::nan("");
  r.grad_norm = INFINITY;
  r.skipped_reason = "gradient not finite";
  const std::string text = to_json(r);
  EXPECT_NE(text.find("\"loss\": null"), std::string::npos);
  EXPECT_NE(text.find("\"grad_norm\": null"), std::string::npos);
  EXPECT_NE(text.find("\"mfu\": null"), std::string::npos);
  EXPECT_NE(text.find("\"skipped\": 1, \"skipped_reason\": \"gradient not finite\""), std::string::npos);
}

TEST(MetricsFile, AResumedRunDropsTheRowsItWritesAgain) {
  const auto file = fresh_file("metrics_resume.jsonl");
  {
    MetricsFile m(file);
    for (int step = 1; step <= 5; ++step) m.append(row(step));
  }
  std::ofstream(file, std::ios::app) << "{\"step\": 6, \"lo";  // killed inside a write
  MetricsFile m(file);
  m.keep_until(3);
  m.append(row(4));
  EXPECT_EQ(contents(file),
            to_json(row(1)) + "\n" + to_json(row(2)) + "\n" + to_json(row(3)) + "\n" + to_json(row(4)) + "\n");
}

TEST(MetricsFile, ATornLastRowGoesEvenWhenItsStepIsKept) {
  const auto file = fresh_file("metrics_torn.jsonl");
  std::ofstream(file) << to_json(row(1)) << "\n{\"step\": 2, \"loss\": 2.";
  MetricsFile m(file);
  m.keep_until(100);
  EXPECT_EQ(contents(file), to_json(row(1)) + "\n");
}

TEST(MetricsFile, ARowWithoutItsEndOfLineGoesToo) {
  const auto file = fresh_file("metrics_no_newline.jsonl");
  std::ofstream(file) << to_json(row(1)) << "\n" << to_json(row(2));
  MetricsFile m(file);
  m.keep_until(100);
  m.append(row(2));
  EXPECT_EQ(contents(file), to_json(row(1)) + "\n" + to_json(row(2)) + "\n");
}

TEST(MetricsFile, ALateEvaluationCompletesTheLastRow) {
  const auto file = fresh_file("metrics_late.jsonl");
  MetricsFile m(file);
  m.append(row(1));
  m.append(row(2));
  m.add_evaluation(0.5, 1.5);
  m.append(row(3));
  MetricsRow second = row(2);
  second.eval_loss = 0.5;
  second.eval_perplexity = 1.5;
  EXPECT_EQ(contents(file), to_json(row(1)) + "\n" + to_json(second) + "\n" + to_json(row(3)) + "\n");
}

TEST(MetricsFile, ANewRunStartsEmpty) {
  const auto file = fresh_file("metrics_new.jsonl");
  std::ofstream(file) << to_json(row(1)) << "\n";
  MetricsFile(file).keep_until(0);
  EXPECT_EQ(contents(file), "");
}

TEST(MetricsFile, NamesTheFileItCannotWrite) {
  try {
    MetricsFile m("/nonexistent-folder/metrics.jsonl");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(e.what()).find("/nonexistent-folder/metrics.jsonl"), std::string::npos);
  }
}

TEST(MetricsFile, AFullDiskIsAnError) {
  MetricsFile m("/dev/full");
  EXPECT_THROW(m.append(row(1)), Error);
}

}  // namespace
}  // namespace drivetrain
