// The arithmetic of collective benchmarks: bandwidths as nccl-tests define them, the bytes that must pass through memory,
// and statistics that one disturbed sample does not move. Pure; docs/collectives.md derives the factors.
#pragma once
#include <cstddef>
#include <vector>

namespace drivetrain {

enum class BenchOp { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kAllToAll, kSendRecv, kBarrier };
const char* name(BenchOp op);  // "all_reduce", ..., "sendrecv", "barrier"

// In place: the result lies where the input lay (for a gather or scatter, at the rank's own slice of the whole).
enum class Placing { kInPlace, kOutOfPlace };

// What algorithm bandwidth is multiplied with to give bus bandwidth, for sizes that are the total S.
double bus_factor(BenchOp op, int ranks);

// GB/s with 1 GB = 1e9 bytes; 0 for no bytes. Throws kLogic unless seconds > 0.
double algorithm_gbps(double bytes, double seconds);

// Bytes that all ranks together read and write when each input is read once and each result written once, straight from
// memory to memory: what a collective in symmetric memory on one host must at least move. 0 where nothing bounds it.
double memory_traffic_bytes(BenchOp op, Placing placing, int ranks, double bytes);

struct Spread {
  double median = 0, p10 = 0, p90 = 0, min = 0, max = 0;
};
// Percentiles between two samples are interpolated. Throws kLogic without samples.
Spread spread_of(std::vector<double> samples);

// Median of the absolute deviations from the median.
double median_deviation(const std::vector<double>& samples);

}  // namespace drivetrain
