// Measures the memory-bound CPU ops in GB/s beside a triad of the same run. Bytes are those an op must read and write;
// `of triad` is the share of the triad's rate (its own bytes counted the same way). Times are
// processor time of the calling thread, median and best call; rates are of the best one: what a busy machine disturbs
// least.
//
//   bench_ops [threads] [rounds]
#include <omp.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/rope.h"

namespace {

using namespace drivetrain;

// Memory in huge pages, filled with small numbers, for the life of the program.
class Pool {
 public:
  Tensor take(DType dtype, std::initializer_list<std::int64_t> dims) {
    Tensor t(nullptr, dtype, dims);
    constexpr std::size_t kHuge = std::size_t{2} << 20;
    const std::size_t bytes = (t.bytes() + kHuge - 1) / kHuge * kHuge;
    blocks_.emplace_back(std::aligned_alloc(kHuge, bytes), &std::free);
    t.data = static_cast<std::byte*>(blocks_.back().get());
    madvise(t.data, bytes, MADV_HUGEPAGE);
    if (dtype == DType::kF32) std::fill_n(t.as<float>(), t.count(), 0.01f);
    if (dtype == DType::kBF16) std::fill_n(t.as<bf16>(), t.count(), bf16(0.5f));
    if (dtype == DType::kI32) std::fill_n(t.as<std::int32_t>(), t.count(), 3);
    if (dtype == DType::kI64) std::fill_n(t.as<std::int64_t>(), t.count(), 3);
    return t;
  }

 private:
  std::vector<std::unique_ptr<void, void (*)(void*)>> blocks_;
};

struct Bench {
  std::string name;
  double bytes;
  std::function<void()> run;
  std::vector<double> seconds;
};

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void triad(Tensor a, Tensor b, Tensor c) {
  float *x = a.as<float>(), *y = b.as<float>(), *z = c.as<float>();
  cpu::parallel_for(a.count(), 4096, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) x[i] = y[i] + 0.5f * z[i];
  });
}

void add_large_ops(Pool& pool, std::vector<Bench>& benches) {
  constexpr std::int64_t kCount = 16'000'000;
  constexpr auto kBytes = static_cast<double>(kCount);
  const Tensor a = pool.take(DType::kF32, {kCount}), b = pool.take(DType::kF32, {kCount});
  const Tensor c = pool.take(DType::kF32, {kCount}), d = pool.take(DType::kF32, {kCount});
  const Tensor h = pool.take(DType::kBF16, {kCount}), g = pool.take(DType::kBF16, {kCount});
  static double sum = 0;
  const Tensor out(&sum, DType::kF64, {1});
  const AdamWArgs args{1e-6f, 0.9f, 0.95f, 1e-8f, 0.1f, 1.0f, 10};
  benches.push_back({"triad f32", 12 * kBytes, [=] { triad(a, b, c); }, {}});
  benches.push_back({"adamw, bf16 value", 30 * kBytes, [=] { cpu::adamw(a, b, c, h, d, args); }, {}});
  benches.push_back({"adamw, f32 master only", 28 * kBytes, [=] { cpu::adamw(a, b, c, {}, d, args); }, {}});
  benches.push_back({"sum_squares", 4 * kBytes, [=] { cpu::sum_squares(out, d); }, {}});
  benches.push_back({"zero f32", 4 * kBytes, [=] { cpu::zero(a); }, {}});
  benches.push_back({"copy f32", 8 * kBytes, [=] { cpu::copy(a, b); }, {}});
  benches.push_back({"copy f32 to bf16", 6 * kBytes, [=] { cpu::copy(h, b); }, {}});
  benches.push_back({"copy bf16 to f32", 6 * kBytes, [=] { cpu::copy(a, h); }, {}});
  benches.push_back({"add f32", 12 * kBytes, [=] { cpu::add(a, b, c); }, {}});
  benches.push_back({"add bf16", 6 * kBytes, [=] { cpu::add(h, h, g); }, {}});
  benches.push_back({"reduce 2 f32 into both",
                     16 * kBytes,
                     [=] {
                       const std::vector<std::byte*> dsts{a.data, b.data};
                       const std::vector<const std::byte*> sources{a.data, b.data};
                       cpu::reduce(dsts, sources, DType::kF32, cpu::Reduction::kAverage, kCount);
                     },
                     {}});
  benches.push_back({"reduce 2 bf16 into both",
                     8 * kBytes,
                     [=] {
                       const std::vector<std::byte*> dsts{h.data, g.data};
                       const std::vector<const std::byte*> sources{h.data, g.data};
                       cpu::reduce(dsts, sources, DType::kBF16, cpu::Reduction::kAverage, kCount);
                     },
                     {}});
}

// The loss over the logits of 512 tokens of GPT-2.
void add_loss(Pool& pool, std::vector<Bench>& benches, DType dtype) {
  constexpr std::int64_t kTokens = 512, kVocab = 50257, kPadded = 50304;
  const Tensor logits = pool.take(dtype, {kTokens, kPadded}), targets = pool.take(DType::kI32, {kTokens});
  const Tensor stats = pool.take(DType::kF32, {1, kTokens, 3});
  const double bytes = static_cast<double>(logits.bytes());
  const std::string type = name(dtype);
  benches.push_back({"loss_stats " + type,
                     bytes,
                     [=] {
                       cpu::loss_stats(stats.reshape({kTokens, 3}), logits, targets, {0, kVocab});
                     },
                     {}});
  benches.push_back({"loss_grad " + type,
                     2 * bytes,
                     [=] {
                       cpu::loss_grad(logits, stats, targets, {0, kVocab}, 1e-3f);
                     },
                     {}});
}

// Activations of 512 tokens of GPT-2 124M: mostly in the last-level cache, as in training.
void add_layer_ops(Pool& pool, std::vector<Bench>& benches) {
  constexpr std::int64_t kTokens = 512, kWidth = 768, kHidden = 3072;
  constexpr DType t = DType::kBF16;
  const Tensor x = pool.take(t, {kTokens, kWidth}), delta = pool.take(t, {kTokens, kWidth}),
               y = pool.take(t, {kTokens, kWidth});
  const Tensor sum = pool.take(t, {kTokens, kWidth}), w = pool.take(t, {kWidth}), b = pool.take(t, {kWidth});
  const Tensor mean = pool.take(DType::kF32, {kTokens}), inv = pool.take(DType::kF32, {kTokens});
  const Tensor dw = pool.take(DType::kF32, {kWidth}), db = pool.take(DType::kF32, {kHidden});
  const Tensor wide = pool.take(t, {kTokens, kHidden}), wide_y = pool.take(t, {kTokens, kHidden});
  const Tensor keys = pool.take(DType::kI64, {kTokens}), ids = pool.take(DType::kI32, {kTokens});
  const Tensor table = pool.take(DType::kF32, {50304, kWidth});
  for (std::int64_t i = 0; i < kTokens; ++i) ids.as<std::int32_t>()[i] = static_cast<std::int32_t>(i * 97 % 50257);
  const double row_bytes = 2.0 * kTokens * kWidth, wide_bytes = 2.0 * kTokens * kHidden;
  benches.push_back({"layer_norm + residual",
                     4 * row_bytes,
                     [=] { cpu::layer_norm(y, mean, inv, sum, x, delta, w, b, 1e-5f); },
                     {}});
  benches.push_back(
      {"layer_norm_grad",
       6 * row_bytes,
       [=] { cpu::layer_norm_grad(y, dw, db.flat(0, kWidth), delta, x, w, mean, inv, Write::kOverwrite); },
       {}});
  benches.push_back(
      {"rms_norm + residual", 4 * row_bytes, [=] { cpu::rms_norm(y, inv, sum, x, delta, w, 1e-5f); }, {}});
  benches.push_back(
      {"rms_norm_grad", 6 * row_bytes, [=] { cpu::rms_norm_grad(y, dw, delta, x, w, inv, Write::kOverwrite); }, {}});
  benches.push_back({"gelu", 2 * wide_bytes, [=] { cpu::gelu(wide_y, wide); }, {}});
  benches.push_back({"gelu_grad", 3 * wide_bytes, [=] { cpu::gelu_grad(wide_y, wide_y, wide); }, {}});
  benches.push_back({"bias_grad", wide_bytes, [=] { cpu::bias_grad(db, wide, Write::kOverwrite); }, {}});
  benches.push_back({"dropout", 2 * row_bytes, [=] { cpu::dropout(y, x, keys, {0.1f, 7, 1}); }, {}});
  benches.push_back({"embedding_grad, overwrite",
                     static_cast<double>(table.bytes()) + 5 * row_bytes,
                     [=] { cpu::embedding_grad(table, ids, x, 0, Write::kOverwrite); },
                     {}});
}

}  // namespace

int main(int argc, char** argv) {
  omp_set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  Pool pool;
  std::vector<Bench> benches;
  add_large_ops(pool, benches);
  add_loss(pool, benches, DType::kBF16);
  add_loss(pool, benches, DType::kF32);
  add_layer_ops(pool, benches);
  for (int round = -1; round < rounds; ++round) {
    for (Bench& bench : benches) {
      const double start = thread_seconds();
      bench.run();
      const double elapsed = thread_seconds() - start;
      if (round >= 0) bench.seconds.push_back(elapsed);
    }
  }
  const auto best = [](const Bench& bench) { return *std::min_element(bench.seconds.begin(), bench.seconds.end()); };
  const double triad_rate = benches.front().bytes / best(benches.front());
  std::printf("%-28s %10s %10s %8s %9s\n", "op", "median ms", "best ms", "GB/s", "of triad");
  for (const Bench& bench : benches) {
    const double rate = bench.bytes / best(bench);
    std::printf("%-28s %10.3f %10.3f %8.1f %8.0f%%\n", bench.name.c_str(), median(bench.seconds) * 1e3,
                best(bench) * 1e3, rate / 1e9, 100 * rate / triad_rate);
  }
}
