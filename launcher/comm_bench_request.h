// What `drivetrain comm bench` is asked to measure: the command line as plain data, and the cases it comes to. Reads words
// and refuses wrong ones; measures nothing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "runtime/comm/bench_math.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/world.h"

namespace drivetrain {

enum class BenchTransport { kAuto, kShm, kMpi, kHierarchical, kThreads };
enum class BenchMemory { kSymmetric, kOrdinary };

struct BenchSizes {
  std::size_t begin = 8, end = std::size_t{64} << 20;  // bytes of the whole tensor
  double factor = 4;
  std::size_t step = 0;  // bytes added from size to size; 0: multiply by factor
};

struct BenchRequest {
  std::vector<BenchOp> ops;
  std::vector<DType> dtypes;
  ReduceOp reduce = ReduceOp::kSum;
  std::vector<Placing> placings;  // those asked for; an op runs the ones it has
  BenchSizes sizes;
  int iterations = 0;  // 0: more for small messages, see iterations_for()
  int warmup = 2;
  BenchMemory memory = BenchMemory::kSymmetric;
  BenchTransport transport = BenchTransport::kAuto;
  int ranks_per_host = 0;  // > 0: blocks of ranks stand for hosts
  std::string interface;   // as told; "": not known
  enum class Timing { kSingle, kBackToBack } timing = Timing::kSingle;
  enum class Check { kOn, kOff } check = Check::kOn;
  enum class Against { kNothing, kMpi } against = Against::kNothing;
  enum class Measure { kSweep, kLinks } measure = Measure::kSweep;
  std::string mpi_settings = "default";
  std::string json;  // file, "-" for standard output, "": none
};

// Words as the command line has them; see --help.
std::size_t parse_size(const std::string& option, const std::string& word);  // "8", "64K", "16M", "1G"
std::vector<BenchOp> parse_ops(const std::string& words);                    // comma list, or "all"
std::vector<DType> parse_dtypes(const std::string& words);
ReduceOp parse_reduce(const std::string& word);
std::vector<Placing> parse_placings(const std::string& word);
BenchTransport parse_transport(const std::string& word);
const char* name(BenchTransport transport);
const char* name(BenchMemory memory);
const char* name(Placing placing);  // "in", "out"

// The ways an op of Communicator can be called.
std::vector<Placing> placings_of(BenchOp op);
bool reduces(BenchOp op);
bool has_shares(BenchOp op);  // needs a multiple of the ranks

// Every fault that shows before a rank runs. Throws kUsage naming the option, its value and the fix.
void check_request(const BenchRequest& request);

// One line of the sweep. `count` elements of the whole tensor: the gathered, the not yet scattered, or simply all of it.
struct BenchCase {
  BenchOp op = BenchOp::kAllReduce;
  DType dtype = DType::kF32;
  ReduceOp reduce = ReduceOp::kSum;
  Placing placing = Placing::kInPlace;
  std::int64_t count = 0;
  std::size_t bytes() const { return static_cast<std::size_t>(count) * size_of(dtype); }
};
// In the order they run. Sizes are rounded down to whole elements, and to a multiple of `ranks` for ops with shares; at
// least one element or one for each rank. Sizes that round to the same are measured once.
std::vector<BenchCase> cases_of(const BenchRequest& request, int ranks);

// Bytes of buffers that one rank needs for all cases.
std::size_t memory_of(const std::vector<BenchCase>& cases, int ranks);

int iterations_for(const BenchRequest& request, std::size_t bytes);

}  // namespace drivetrain
