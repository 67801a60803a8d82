// Rates of the CPU products and attention on the GPT-2 124M shapes, as shares of the peak measured in the same run.
//   bench_kernels [threads] [bf16|f32]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/peak.h"
#include "kernels/ops.h"

namespace drivetrain {
namespace {

double seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Times against processor time with one thread (other work on the machine does not count), wall time with more.
struct Bench {
  Device& device;
  DType dtype;
  int threads;
  double peak = 0;

  double median_s(const std::function<void()>& f) const {
    constexpr double kBudget_s = 0.25;
    const clockid_t clock = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    f();
    std::vector<double> times;
    for (double total = 0; (total < kBudget_s || times.size() < 3) && times.size() < 50; total += times.back()) {
      const double begin = seconds(clock);
      f();
      times.push_back(seconds(clock) - begin);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
  void row(const std::string& what, double flops, const std::function<void()>& f) const {
    const double s = median_s(f);
    std::printf("%-34s %9.3f ms %8.1f GF/s %6.1f %% of peak\n", what.c_str(), s * 1e3, flops / s * 1e-9,
                100 * flops / s / peak);
    std::fflush(stdout);
  }
};

// A tensor filled with small numbers.
struct Filled {
  Filled(Device& device, DType dtype, std::initializer_list<std::int64_t> dims)
      : buffer(device, Tensor(nullptr, dtype, dims).bytes()), tensor(buffer.data(), dtype, dims) {
    unsigned state = 1;
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      state = state * 1664525u + 1013904223u;
      const float x = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
      if (dtype == DType::kF32) tensor.as<float>()[i] = x;
      if (dtype == DType::kBF16) tensor.as<bf16>()[i] = bf16(x);
    }
  }
  operator Tensor() const { return tensor; }
  Buffer buffer;
  Tensor tensor;
};

void products(const Bench& bench, std::int64_t m, std::int64_t n, std::int64_t k) {
  Ops& ops = bench.device.ops();
  const Filled x(bench.device, bench.dtype, {m, k}), w(bench.device, bench.dtype, {n, k});
  const Filled y(bench.device, bench.dtype, {m, n}), dw(bench.device, DType::kF32, {n, k});
  const std::string shape = std::to_string(m) + " x " + std::to_string(k) + " -> " + std::to_string(n);
  const double flops = 2.0 * static_cast<double>(m * n) * static_cast<double>(k);
  bench.row("linear    " + shape, flops, [&] { ops.linear(y, x, w, {}); });
  bench.row("linear_dx " + shape, flops, [&] { ops.linear_dx(x, y, w); });
  bench.row("  with its packing", flops, [&] {
    ops.weights_changed();
    ops.linear_dx(x, y, w);
  });
  bench.row("linear_dw " + shape, flops, [&] { ops.linear_dw(dw, y, x, Write::kAccumulate); });
}

void attention(const Bench& bench, const AttentionShape& s) {
  Ops& ops = bench.device.ops();
  const std::int64_t tokens = s.batch * s.seq, columns = (s.heads + 2 * s.kv_heads) * s.head_dim;
  const Filled qkv(bench.device, bench.dtype, {tokens, columns}), dqkv(bench.device, bench.dtype, {tokens, columns});
  const Filled y(bench.device, bench.dtype, {tokens, s.heads * s.head_dim});
  const Filled dy(bench.device, bench.dtype, {tokens, s.heads * s.head_dim});
  const Filled lse(bench.device, DType::kF32, {s.batch, s.heads, s.seq});
  const Filled delta(bench.device, DType::kF32, {s.batch, s.heads, s.seq});
  const Filled starts(bench.device, DType::kI32, {s.batch, s.seq}), keys(bench.device, DType::kI64, {tokens});
  std::memset(starts.tensor.data, 0, starts.tensor.bytes());
  const double pairs = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.seq) *
                       (static_cast<double>(s.seq) + 1) / 2 * static_cast<double>(s.head_dim);
  const std::string shape = std::to_string(s.batch) + " x " + std::to_string(s.seq) + ", " + std::to_string(s.heads) +
                            " heads of " + std::to_string(s.head_dim);
  bench.row("attention " + shape, 4 * pairs, [&] { ops.attention(y, lse, qkv, starts, keys, s, {}, 0); });
  bench.row("attention_grad " + shape, 10 * pairs,
            [&] { ops.attention_grad(dqkv, delta, dy, y, lse, qkv, starts, keys, s, {}, 0); });
}

void run(int threads, DType dtype) {
  const auto device = make_cpu_device(threads);
  Bench bench{*device, dtype, threads};
  bench.peak = cpu::measure_peak_flops(dtype, threads);
  std::printf("%s, %s: peak %.1f GF/s\n", device->description().c_str(), name(dtype), bench.peak * 1e-9);
  for (const std::int64_t m : {256, 512, 1024}) {
    products(bench, m, 2304, 768);
    products(bench, m, 768, 768);
    products(bench, m, 3072, 768);
    products(bench, m, 768, 3072);
  }
  products(bench, 512, 50257, 768);
  products(bench, 1, 3072, 768);
  products(bench, 1, 50257, 768);
  for (const std::int64_t seq : {256, 1024}) attention(bench, {512 / seq + 1, seq, 12, 12, 64, 0.125f});
  std::printf("peak again %.1f GF/s\n", cpu::measure_peak_flops(dtype, threads) * 1e-9);
}

}  // namespace
}  // namespace drivetrain

int main(int argc, char** argv) {
  using namespace drivetrain;
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  try {
    run(threads, argc > 2 && std::string(argv[2]) == "f32" ? DType::kF32 : DType::kBF16);
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_kernels: %s\n", e.what());
    return e.exit_code();
  }
}
