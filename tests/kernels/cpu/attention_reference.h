// Attention in doubles, straight from the definition: the reference of the attention tests.
#pragma once
#include <cmath>
#include <vector>

#include "kernels/ops.h"
#include "kernels/philox.h"

namespace drivetrain::testing {

struct ReferenceAttention {
  AttentionShape s;
  std::vector<double> qkv, dy;
  std::vector<double> doc_starts, row_keys;
  Dropout dropout;
  std::int64_t head_begin = 0;

  std::vector<double> y, lse, dqkv;

  std::size_t columns() const { return static_cast<std::size_t>((s.heads + 2 * s.kv_heads) * s.head_dim); }
  std::size_t q_at(std::int64_t b, std::int64_t i, std::int64_t head) const {
    return static_cast<std::size_t>(b * s.seq + i) * columns() + static_cast<std::size_t>(head * s.head_dim);
  }
  std::size_t y_at(std::int64_t b, std::int64_t i, std::int64_t head) const {
    return static_cast<std::size_t>(((b * s.seq + i) * s.heads + head) * s.head_dim);
  }
  double keep_scale(std::int64_t b, std::int64_t i, std::int64_t head, std::int64_t j) const {
    if (dropout.p == 0) return 1;
    const auto column = static_cast<std::uint64_t>((head_begin + head) * s.seq + j);
    const auto key = static_cast<std::uint64_t>(row_keys[static_cast<std::size_t>(b * s.seq + i)]);
    const auto words = philox({static_cast<std::uint32_t>(column / 4), dropout.site, static_cast<std::uint32_t>(key),
                               static_cast<std::uint32_t>(key >> 32)},
                              philox_key(dropout.seed));
    return words[column % 4] < static_cast<std::uint32_t>(static_cast<double>(dropout.p) * 0x1p32)
               ? 0
               : 1 / (1 - static_cast<double>(dropout.p));
  }

  void run() {
    y.assign(static_cast<std::size_t>(s.batch * s.seq * s.heads * s.head_dim), 0);
    lse.assign(static_cast<std::size_t>(s.batch * s.heads * s.seq), 0);
    dqkv.assign(qkv.size(), 0);
    for (std::int64_t b = 0; b < s.batch; ++b)
      for (std::int64_t head = 0; head < s.heads; ++head)
        for (std::int64_t i = 0; i < s.seq; ++i) row(b, head, i);
  }

 private:
  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (std::int64_t c = 0; c < s.head_dim; ++c) sum += a[c] * b[c];
    return sum;
  }

  void row(std::int64_t b, std::int64_t head, std::int64_t i) {
    const std::int64_t kv = head / (s.heads / s.kv_heads);
    const auto doc = static_cast<std::int64_t>(doc_starts[static_cast<std::size_t>(b * s.seq + i)]);
    const std::int64_t first = s.window > 0 ? std::max(doc, i - s.window + 1) : doc;
    const auto k_at = [&](std::int64_t j) { return q_at(b, j, s.heads + kv); };
    const auto v_at = [&](std::int64_t j) { return q_at(b, j, s.heads + s.kv_heads + kv); };
    const double* q = &qkv[q_at(b, i, head)];
    double max = -1e300, total = 0;
    std::vector<double> p;
    for (std::int64_t j = first; j <= i; ++j) p.push_back(s.scale * dot(q, &qkv[k_at(j)]));
    for (const double x : p) max = std::max(max, x);
    for (double& x : p) total += x = std::exp(x - max);
    lse[static_cast<std::size_t>((b * s.heads + head) * s.seq + i)] = max + std::log(total);
    double delta = 0;
    for (std::int64_t j = first; j <= i; ++j) {
      double& pj = p[static_cast<std::size_t>(j - first)];
      pj /= total;
      const double kept = pj * keep_scale(b, i, head, j);
      for (std::int64_t c = 0; c < s.head_dim; ++c) {
        const auto u = static_cast<std::size_t>(c);
        y[y_at(b, i, head) + u] += kept * qkv[v_at(j) + u];
        dqkv[v_at(j) + u] += kept * dy[y_at(b, i, head) + u];
      }
      delta += kept * dot(&dy[y_at(b, i, head)], &qkv[v_at(j)]);
    }
    for (std::int64_t j = first; j <= i; ++j) {
      const double dp = keep_scale(b, i, head, j) * dot(&dy[y_at(b, i, head)], &qkv[v_at(j)]);
      const double ds = p[static_cast<std::size_t>(j - first)] * (dp - delta) * s.scale;
      for (std::int64_t c = 0; c < s.head_dim; ++c) {
        const auto u = static_cast<std::size_t>(c);
        dqkv[q_at(b, i, head) + u] += ds * qkv[k_at(j) + u];
        dqkv[k_at(j) + u] += ds * q[u];
      }
    }
  }
};

}  // namespace drivetrain::testing
