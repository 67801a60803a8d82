#include "launcher/comm_bench_request.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <sstream>

#include "kernels/error.h"
#include "runtime/comm/call_record.h"
#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::kUsage, message);
}

constexpr BenchOp kOps[] = {BenchOp::kAllReduce, BenchOp::kReduceScatter, BenchOp::kAllGather, BenchOp::kBroadcast,
                            BenchOp::kReduce,    BenchOp::kAllToAll,      BenchOp::kSendRecv,  BenchOp::kBarrier};
constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kBF16, DType::kF16,
                             DType::kI32, DType::kI64, DType::kU8};
constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAverage};
constexpr BenchTransport kTransports[] = {BenchTransport::kAuto, BenchTransport::kShm, BenchTransport::kMpi,
                                          BenchTransport::kHierarchical, BenchTransport::kThreads};

// The value whose name is `word`, else an error with the nearest name and all of them.
template <class T>
T pick(const std::string& option, const std::string& word, std::span<const T> values) {
  std::vector<std::string> known;
  std::string all;
  for (const T value : values) {
    if (word == name(value)) return value;
    known.emplace_back(name(value));
    all += (all.empty() ? "" : ", ") + known.back();
  }
  const std::string near = nearest_word(word, known);
  refuse(option + " " + word + ": " + (near.empty() ? "" : "did you mean '" + near + "'? ") + "Known are " + all);
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> list;
  std::istringstream text(words);
  for (std::string word; std::getline(text, word, ',');) list.push_back(word);
  return list;
}

template <class T>
std::vector<T> pick_list(const std::string& option, const std::string& words, std::span<const T> values) {
  std::vector<T> list;
  for (const std::string& word : split(words)) list.push_back(pick(option, word, values));
  if (list.empty()) refuse(option + " is empty; name one or several, with commas");
  return list;
}

std::int64_t count_of(BenchOp op, DType dtype, std::size_t bytes, int ranks) {
  if (op == BenchOp::kBarrier) return 0;
  const auto elements = static_cast<std::int64_t>(bytes / size_of(dtype));
  const std::int64_t unit = has_shares(op) ? ranks : 1;
  return std::max<std::int64_t>(1, elements / unit) * unit;
}

constexpr std::size_t kMostSizes = 10000;

// Ends one beyond the most that are measured.
std::vector<std::size_t> list_sizes(const BenchSizes& sizes) {
  std::vector<std::size_t> list;
  for (std::size_t size = sizes.begin; size <= sizes.end && list.size() <= kMostSizes;) {
    list.push_back(size);
    const double next = static_cast<double>(size) * sizes.factor;
    size = sizes.step > 0 ? size + sizes.step : std::max(size + 1, static_cast<std::size_t>(next));
  }
  return list;
}

void check_sizes(const BenchSizes& sizes) {
  if (sizes.begin == 0) refuse("--begin 0: sizes start at 1 byte");
  if (sizes.begin > sizes.end)
    refuse("--begin " + std::to_string(sizes.begin) + " is above --end " + std::to_string(sizes.end) +
           " bytes; nothing to measure");
  std::ostringstream factor;
  factor << sizes.factor;
  if (sizes.step == 0 && !(sizes.factor > 1 && sizes.factor <= 1e9))
    refuse("--factor " + factor.str() +
           ": sizes are multiplied by it, so it must be above 1 (--step BYTES adds instead)");
  const std::size_t steps = sizes.step > 0 ? (sizes.end - sizes.begin) / sizes.step : 0;
  if (steps >= kMostSizes)
    refuse("--step " + std::to_string(sizes.step) + " gives " + std::to_string(steps + 1) + " sizes; at most " +
           std::to_string(kMostSizes) + " are measured, use a larger step or --factor");
  if (list_sizes(sizes).size() > kMostSizes)
    refuse("--factor " + factor.str() + " gives more than " + std::to_string(kMostSizes) +
           " sizes, the most that are measured; use a larger factor or --step");
}

}  // namespace

std::size_t parse_size(const std::string& option, const std::string& word) {
  std::uint64_t number = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number);
  std::string unit(parsed.ptr, end);
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const bool known = unit.empty() || unit == "K" || unit == "M" || unit == "G" || unit == "T";
  if (parsed.ec == std::errc::invalid_argument || !known)
    refuse(option + " " + word + ": wants bytes as a whole number with K, M or G, as in 8, 64K, 16M, 1G (1K = 1024)");
  const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : unit == "T" ? 40 : 0;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 46;
  if (parsed.ec == std::errc::result_out_of_range || number > (kMost >> shift))
    refuse(option + " " + word + ": sizes end at 64T");
  return static_cast<std::size_t>(number << shift);
}

std::vector<BenchOp> parse_ops(const std::string& words) {
  if (words == "all") return {std::begin(kOps), std::end(kOps)};
  return pick_list<BenchOp>("--op", words, kOps);
}

std::vector<DType> parse_dtypes(const std::string& words) {
  if (words == "all") return {std::begin(kDTypes), std::end(kDTypes)};
  return pick_list<DType>("--dtype", words, kDTypes);
}

ReduceOp parse_reduce(const std::string& word) {
  return pick<ReduceOp>("--reduce", word, kReduceOps);
}

BenchTransport parse_transport(const std::string& word) {
  return pick<BenchTransport>("--transport", word, kTransports);
}

std::vector<Placing> parse_placings(const std::string& word) {
  if (word == "in") return {Placing::kInPlace};
  if (word == "out") return {Placing::kOutOfPlace};
  if (word == "both") return {Placing::kInPlace, Placing::kOutOfPlace};
  refuse("--place " + word + ": wants in, out or both");
}

const char* name(BenchTransport transport) {
  switch (transport) {
    case BenchTransport::kShm:
      return "shm";
    case BenchTransport::kMpi:
      return "mpi";
    case BenchTransport::kHierarchical:
      return "hierarchical";
    case BenchTransport::kThreads:
      return "threads";
    default:
      return "auto";
  }
}

const char* name(BenchMemory memory) {
  return memory == BenchMemory::kSymmetric ? "symmetric" : "ordinary";
}

const char* name(Placing placing) {
  return placing == Placing::kInPlace ? "in" : "out";
}

std::vector<Placing> placings_of(BenchOp op) {
  switch (op) {
    case BenchOp::kAllGather:
    case BenchOp::kReduceScatter:
      return {Placing::kInPlace, Placing::kOutOfPlace};
    case BenchOp::kAllToAll:
    case BenchOp::kSendRecv:
      return {Placing::kOutOfPlace};
    default:
      return {Placing::kInPlace};
  }
}

bool reduces(BenchOp op) {
  return op == BenchOp::kAllReduce || op == BenchOp::kReduceScatter || op == BenchOp::kReduce;
}

bool has_shares(BenchOp op) {
  return op == BenchOp::kReduceScatter || op == BenchOp::kAllGather || op == BenchOp::kAllToAll;
}

void check_request(const BenchRequest& request) {
  check_sizes(request.sizes);
  if (request.iterations < 0) refuse("--iters " + std::to_string(request.iterations) + ": wants at least 1");
  if (request.warmup < 0) refuse("--warmup " + std::to_string(request.warmup) + ": wants 0 or more");
  if (request.ranks_per_host < 0)
    refuse("--ranks-per-host " + std::to_string(request.ranks_per_host) + ": wants at least 1");
  const bool reducing = std::any_of(request.ops.begin(), request.ops.end(), reduces);
  if (!reducing && request.reduce != ReduceOp::kSum)
    refuse(std::string("--reduce ") + name(request.reduce) + ": " + name(request.ops.front()) + " reduces nothing");
  const bool threads = request.transport == BenchTransport::kThreads;
  if (threads && request.ranks_per_host > 0)
    refuse("--ranks-per-host: the threads transport is one process on one host; use --transport hierarchical");
  if (request.transport == BenchTransport::kShm && request.ranks_per_host > 0)
    refuse("--ranks-per-host: --transport shm is for ranks that share one host; use hierarchical or auto");
  if (request.against == BenchRequest::Against::kNothing) return;
  if (threads) refuse("--against mpi: the threads transport runs in one process without MPI; use --transport shm");
  if (reducing && request.reduce == ReduceOp::kAverage)
    refuse("--reduce average: MPI has no average to compare with; use --reduce sum, or leave --against out");
}

std::vector<BenchCase> cases_of(const BenchRequest& request, int ranks) {
  std::vector<BenchCase> cases;
  const auto wanted = [&](Placing placing) {
    return std::find(request.placings.begin(), request.placings.end(), placing) != request.placings.end();
  };
  for (const BenchOp op : request.ops) {
    for (const DType dtype : request.dtypes) {
      if (op == BenchOp::kBarrier && dtype != request.dtypes.front()) continue;
      for (const Placing placing : placings_of(op)) {
        if (!wanted(placing)) continue;
        std::int64_t before = -1;
        for (const std::size_t size : list_sizes(request.sizes)) {
          const BenchCase one{op, dtype, reduces(op) ? request.reduce : ReduceOp::kSum, placing,
                              count_of(op, dtype, size, ranks)};
          if (one.count != before) cases.push_back(one);
          before = one.count;
        }
      }
    }
  }
  if (cases.empty())
    refuse(std::string("--place ") + name(request.placings.front()) + ": " + name(request.ops.front()) +
           " exists only " + (request.placings.front() == Placing::kInPlace ? "out of" : "in") + " place");
  return cases;
}

std::size_t memory_of(const std::vector<BenchCase>& cases, int ranks) {
  std::size_t most = 0;
  for (const BenchCase& one : cases) {
    const std::size_t second = one.placing == Placing::kInPlace ? 0
                               : has_shares(one.op) && one.op != BenchOp::kAllToAll
                                   ? one.bytes() / static_cast<std::size_t>(ranks)
                                   : one.bytes();
    most = std::max(most, one.bytes() + second);
  }
  return most + 4096;  // the second tensor starts on a cache line of its own
}

int iterations_for(const BenchRequest& request, std::size_t bytes) {
  if (request.iterations > 0) return request.iterations;
  return bytes <= (1u << 16) ? 100 : bytes <= (4u << 20) ? 30 : 10;
}

}  // namespace drivetrain
