// What one rank says about the collective it enters: a plain record that travels through shared memory or MPI and is
// compared on every rank. Knows nothing of transports.
#pragma once
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/tensor.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

enum class CollectiveOp : std::uint8_t {
  kNone,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kBarrier,
  kSplit,
  kAllocate,  // symmetric_buffer
  kShare,     // a block of memory of the transport's own
  kSend,
  kRecv,
};
const char* name(CollectiveOp op);
const char* name(ReduceOp op);

struct CallRecord {
  std::uint64_t sequence = 0;   // number of this call in its group, from 1
  std::int64_t count = 0;       // elements of one share: all of x, one rank's part of a gather, scatter or exchange
  std::int64_t arrival_ns = 0;  // steady clock
  std::int32_t root = -1;       // of a send or recv: the other rank
  CollectiveOp op = CollectiveOp::kNone;
  DType dtype = DType::kU8;
  ReduceOp reduce = ReduceOp::kSum;
  std::int32_t last_rank = -1;  // member that arrived last; known once entered, -1: not even then
  std::uint32_t flight = 0;     // number of the call in its rank's flight recorder, 0: not recorded

  bool same_call(const CallRecord& other) const;
  // "all_reduce(f32[8], sum)", "broadcast(bf16[4], root 1)", "send(f32[2], to 3)"
  std::string describe() const;
};
CallRecord make_record(CollectiveOp op, DType dtype, std::int64_t count);
static_assert(std::is_trivially_copyable_v<CallRecord>);

}  // namespace drivetrain
