// Every op on every SIMD target that this processor can run: conversions bit for bit, the rest up to rounding.
#include <hwy/targets.h>

#include <utility>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/rope.h"
#include "tests/kernels/cpu/op_testing.h"

namespace drivetrain::testing {
namespace {

// Lets the ops use one target only, until the end of the scope.
class OnlyTarget {
 public:
  explicit OnlyTarget(std::int64_t target) { choose(target); }
  ~OnlyTarget() { choose(0); }
  OnlyTarget(const OnlyTarget&) = delete;
  OnlyTarget& operator=(const OnlyTarget&) = delete;

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
  }
};

std::vector<std::int64_t> targets() {
  std::vector<std::int64_t> all;
  const std::int64_t supported = hwy::SupportedTargets();
  for (int bit = 0; bit < 63; ++bit) {
    if ((supported >> bit & 1) != 0) all.push_back(std::int64_t{1} << bit);
  }
  return all;
}

constexpr std::int64_t kRows = 6, kCols = 77;
using Op = std::function<Host(DType)>;

// One op per entry, returning what it wrote (the last output where there are several).
std::vector<std::pair<std::string, Op>> approximate_ops() {
  const auto x = [](DType t) { return Host::random(t, {kRows, kCols}, 1, -3, 3); };
  const auto w = [](DType t) { return Host::random(t, {kCols}, 2); };
  const auto stats = [](float x0) { return Host::filled(DType::kF32, {kRows}, static_cast<double>(x0)); };
  const auto targets_of = [] { return Host::of(DType::kI32, {kRows}, {0, 5, -100, 76, 12, 40}); };
  const auto out = [](DType t) { return Host(t, {kRows, kCols}); };
  return {
      {"gelu",
       [=](DType t) {
         const Host y = out(t);
         cpu::gelu(y, x(t));
         return y;
       }},
      {"gelu_grad",
       [=](DType t) {
         const Host y = out(t);
         cpu::gelu_grad(y, x(t), x(t));
         return y;
       }},
      {"swiglu",
       [=](DType t) {
         const Host y(t, {kRows / 2, kCols});
         cpu::swiglu(y, x(t).view().reshape({kRows / 2, 2 * kCols}));
         return y;
       }},
      {"rms_norm",
       [=](DType t) {
         const Host y = out(t);
         cpu::rms_norm(y, stats(0), {}, x(t), {}, w(t), 1e-5f);
         return y;
       }},
      {"layer_norm",
       [=](DType t) {
         const Host y = out(t);
         cpu::layer_norm(y, stats(0), stats(0), out(t), x(t), x(t), w(t), w(t), 1e-5f);
         return y;
       }},
      {"layer_norm_grad",
       [=](DType t) {
         const Host y = x(t), dw(DType::kF32, {kCols}), db(DType::kF32, {kCols});
         cpu::layer_norm_grad(y, dw, db, x(t), x(t), w(t), stats(0.25f), stats(2), Write::kOverwrite);
         return y;
       }},
      {"loss_stats",
       [=](DType t) {
         const Host s(DType::kF32, {kRows, 3});
         cpu::loss_stats(s, x(t), targets_of(), {0, kCols - 1});
         return s;
       }},
      {"loss_grad",
       [=](DType t) {
         const Host y = x(t), s = Host::filled(DType::kF32, {1, kRows, 3}, 3);
         cpu::loss_grad(y, s, targets_of(), {0, kCols - 1}, 1);
         return y;
       }},
      {"adamw",
       [=](DType t) {
         const Host p = x(DType::kF32), m = x(DType::kF32), v = Host::filled(DType::kF32, {kRows, kCols}, 0.5),
                    value = out(t);
         cpu::adamw(p, m, v, value, x(DType::kF32), {0.01f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.5f, 2});
         return value;
       }},
      {"rope",
       [=](DType t) {
         const Host y = Host::random(t, {kRows, 48}, 3), c = Host::random(DType::kF32, {6, 6}, 4),
                    p = Host::of(DType::kI32, {kRows}, {0, 1, 2, 3, 4, 5});
         cpu::rope(y, p, c, c, {1, kRows, 2, 1, 12, 1.0f});
         return y;
       }},
  };
}

std::vector<std::pair<std::string, Op>> exact_ops() {
  const auto x = [](DType t, unsigned seed = 1) { return Host::random(t, {kRows, kCols}, seed, -3, 3); };
  const auto out = [](DType t) { return Host(t, {kRows, kCols}); };
  return {
      {"copy",
       [=](DType t) {
         const Host y = out(t);
         cpu::copy(y, x(DType::kF32));
         return y;
       }},
      {"copy tiny",
       [=](DType t) {
         const Host y = out(t);
         cpu::copy(y, Host::random(DType::kF32, {kRows, kCols}, 5, -1e-7, 1e-7));
         return y;
       }},
      {"widen",
       [=](DType t) {
         const Host y = out(DType::kF32);
         cpu::copy(y, x(t));
         return y;
       }},
      {"add",
       [=](DType t) {
         const Host y = out(t);
         cpu::add(y, x(t), x(t, 2));
         return y;
       }},
      {"bias_grad",
       [=](DType t) {
         const Host db(DType::kF32, {kCols});
         cpu::bias_grad(db, x(t), Write::kOverwrite);
         return db;
       }},
      {"embedding_grad",
       [=](DType t) {
         const Host d(DType::kF32, {3, kCols}), ids = Host::of(DType::kI32, {kRows}, {0, 1, 2, 2, 1, 1});
         cpu::embedding_grad(d, ids, x(t), 0, Write::kOverwrite);
         return d;
       }},
      {"dropout",
       [=](DType t) {
         const Host y = out(t), keys = Host::of(DType::kI64, {kRows}, {1, 2, 3, -4, 5, 6});
         cpu::dropout(y, x(t), keys, {0.3f, 11, 2});
         return y;
       }},
      {"reduce",
       [=](DType t) {
         const Host y = out(t), a = x(t), b = x(t, 2), c = x(t, 3);
         const std::vector<const std::byte*> sources{a.view().data, b.view().data, c.view().data};
         cpu::reduce(y.view().data, sources, t, cpu::Reduction::kAverage, kRows * kCols);
         return y;
       }},
  };
}

class TargetsTest : public ::testing::TestWithParam<DType> {};

TEST_P(TargetsTest, RoundingOpsAgree) {
  for (const auto& [op_name, op] : approximate_ops()) {
    SCOPED_TRACE(op_name);
    const std::vector<double> want = op(GetParam()).values();
    for (const std::int64_t target : targets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const OnlyTarget only(target);
      const Host got = op(GetParam());
      expect_close(got, want, got.view().dtype == DType::kF32 ? 16 : 1.01, 1e-6);
    }
  }
}

TEST_P(TargetsTest, ExactOpsAreEqualBitForBit) {
  for (const auto& [op_name, op] : exact_ops()) {
    SCOPED_TRACE(op_name);
    const Host want = op(GetParam());
    for (const std::int64_t target : targets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      const OnlyTarget only(target);
      EXPECT_EQ(op(GetParam()).bytes(), want.bytes());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TargetsTest, ::testing::Values(DType::kF32, DType::kBF16, DType::kF16));

}  // namespace
}  // namespace drivetrain::testing
