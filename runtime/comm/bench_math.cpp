#include "runtime/comm/bench_math.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

// Of sorted samples, q from 0 to 1.
double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

const char* name(BenchOp op) {
  switch (op) {
    case BenchOp::kAllReduce:
      return "all_reduce";
    case BenchOp::kReduceScatter:
      return "reduce_scatter";
    case BenchOp::kAllGather:
      return "all_gather";
    case BenchOp::kBroadcast:
      return "broadcast";
    case BenchOp::kReduce:
      return "reduce";
    case BenchOp::kAllToAll:
      return "all_to_all";
    case BenchOp::kSendRecv:
      return "sendrecv";
    case BenchOp::kBarrier:
      return "barrier";
  }
  return "unknown";
}

double bus_factor(BenchOp op, int ranks) {
  const double n = ranks;
  switch (op) {
    case BenchOp::kAllReduce:
      return 2 * (n - 1) / n;
    case BenchOp::kReduceScatter:
    case BenchOp::kAllGather:
    case BenchOp::kAllToAll:
      return (n - 1) / n;
    default:
      return 1;
  }
}

double algorithm_gbps(double bytes, double seconds) {
  if (!(seconds > 0)) throw Error(ErrorKind::kLogic, "a bandwidth over " + std::to_string(seconds) + " seconds");
  return bytes / seconds / 1e9;
}

double memory_traffic_bytes(BenchOp op, Placing placing, int ranks, double bytes) {
  const double n = ranks, s = bytes;
  switch (op) {
    case BenchOp::kAllReduce:
    case BenchOp::kAllToAll:
      return 2 * n * s;
    case BenchOp::kAllGather:
      return 2 * (placing == Placing::kInPlace ? n - 1 : n) * s;
    case BenchOp::kReduceScatter:
    case BenchOp::kReduce:
      return (n + 1) * s;
    case BenchOp::kBroadcast:
      return 2 * (n - 1) * s;
    case BenchOp::kSendRecv:
      return 2 * n * s;
    case BenchOp::kBarrier:
      return 0;
  }
  return 0;
}

Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) throw Error(ErrorKind::kLogic, "statistics of no samples");
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.1), quantile(samples, 0.9), samples.front(), samples.back()};
}

double median_deviation(const std::vector<double>& samples) {
  const double middle = spread_of(samples).median;
  std::vector<double> deviations;
  for (const double x : samples) deviations.push_back(std::abs(x - middle));
  return spread_of(deviations).median;
}

}  // namespace drivetrain
