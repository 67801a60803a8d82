#include "runtime/comm/call_record.h"

#include <array>

namespace drivetrain {
namespace {

constexpr std::array kOpNames = {"none",   "all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                 "reduce", "all_to_all", "barrier",    "split",          "symmetric_buffer",
                                 "share",  "send",       "recv"};

bool reduces(CollectiveOp op) {
  return op == CollectiveOp::kAllReduce || op == CollectiveOp::kReduceScatter || op == CollectiveOp::kReduce;
}

bool carries_data(CollectiveOp op) {
  return op != CollectiveOp::kBarrier && op != CollectiveOp::kSplit && op != CollectiveOp::kAllocate &&
         op != CollectiveOp::kShare;
}

}  // namespace

const char* name(CollectiveOp op) {
  const auto i = static_cast<std::size_t>(op);
  return i < kOpNames.size() ? kOpNames[i] : "?";
}

const char* name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kAverage:
      return "average";
  }
  return "?";
}

CallRecord make_record(CollectiveOp op, DType dtype, std::int64_t count) {
  CallRecord record;
  record.op = op;
  record.dtype = dtype;
  record.count = count;
  return record;
}

bool CallRecord::same_call(const CallRecord& other) const {
  return sequence == other.sequence && op == other.op && dtype == other.dtype && count == other.count &&
         root == other.root && reduce == other.reduce;
}

std::string CallRecord::describe() const {
  std::string s = name(op);
  s += '(';
  if (carries_data(op)) s += std::string(drivetrain::name(dtype)) + '[' + std::to_string(count) + ']';
  if (reduces(op)) s += std::string(", ") + name(reduce);
  if (root >= 0) s += (op == CollectiveOp::kSend ? ", to " : op == CollectiveOp::kRecv ? ", from " : ", root ");
  if (root >= 0) s += std::to_string(root);
  return s + ')';
}

}  // namespace drivetrain
