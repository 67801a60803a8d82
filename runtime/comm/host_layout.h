// What lies in the memory shared by the ranks of one host: one world block with identities and the failure note, one
// control block per group with a slot per rank. Plain data and atomics; no pointers, each process maps it elsewhere.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/comm/call_record.h"
#include "runtime/comm/flight_recorder.h"
#include "runtime/comm/shared_block.h"

namespace drivetrain {

inline constexpr std::size_t kCacheLine = 64;
// Collectives that expose up to this many bytes per rank travel inside the steps: one barrier, no addresses.
inline constexpr std::size_t kInlineBytes = 4096;

// Where a tensor lies, in words that peers understand.
struct Place {
  static constexpr std::uint32_t kOrdinary = 0;           // not shared; offset is its address in its own process
  static constexpr std::uint32_t kDirect = 0xffffffffu;   // offset is an address valid on every rank (threads)
  static constexpr std::uint32_t kNothing = 0xfffffffeu;  // the rank exposes nothing in this call
  std::uint32_t allocation = kOrdinary;                   // otherwise: number of a symmetric allocation
  std::uint64_t offset = 0;                               // bytes from the start of the rank's part
};

inline constexpr std::size_t kCoreWords = 16;  // Linux tells a process about 1,024 cores

struct WorldSlot {
  alignas(kCacheLine) std::int32_t pid;
  std::uint64_t start_time;  // of the process, clock ticks after boot: guards against reused pids
  std::int32_t world_rank;
  std::uint64_t cores[kCoreWords];  // bit i: the process may run on core i
  std::atomic<std::uint32_t> left;  // closed its world; it will take part in nothing more
  FlightLog flight;
};

struct WorldBlock {
  static constexpr std::size_t kReasonBytes = 2048;
  enum : std::uint32_t { kFine, kWriting, kFailed };
  alignas(kCacheLine) std::atomic<std::uint32_t> failed;  // the first failure of the job on this host, for everybody
  std::uint32_t failure_kind;                             // ErrorKind
  char reason[kReasonBytes];
  alignas(kCacheLine) std::atomic<std::uint32_t> next_id;  // of groups and allocations, from 1
  // followed by WorldSlot[size]
};

// A counter that another rank waits for, a futex word.
struct PhaseFlag {
  alignas(kCacheLine) std::atomic<std::uint32_t> phase;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<std::uint64_t>::is_always_lock_free);

// One message on its way between two ranks (send/recv). posted and taken count chunks; both are futex words.
struct Mailbox {
  PhaseFlag posted;  // written by the sender
  CallRecord call;   // of the message whose first chunk was posted last
  Place place;
  BlockTicket ticket;  // of the channel's staging memory, for ordinary memory
  PhaseFlag taken;     // written by the receiver
};

// A call in the few bytes that every member compares.
struct CallCard {
  std::uint64_t kind;  // op, dtype, reduction and root, see pack()
  std::int64_t count;
  std::int64_t arrival_ns;

  static CallCard pack(const CallRecord& call) {
    return {static_cast<std::uint64_t>(call.op) | static_cast<std::uint64_t>(call.dtype) << 8 |
                static_cast<std::uint64_t>(call.reduce) << 16 |
                static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.root)) << 32,
            call.count, call.arrival_ns};
  }
  CallRecord unpack(std::uint64_t sequence) const {
    CallRecord call;
    call.sequence = sequence;
    call.count = count;
    call.arrival_ns = arrival_ns;
    call.op = static_cast<CollectiveOp>(kind & 0xff);
    call.dtype = static_cast<DType>(kind >> 8 & 0xff);
    call.reduce = static_cast<ReduceOp>(kind >> 16 & 0xff);
    call.root = static_cast<std::int32_t>(kind >> 32);
    return call;
  }
  bool same_call(const CallCard& other) const { return kind == other.kind && count == other.count; }
};

// What a member shows its peers when it reaches a barrier of the group. The barrier's phase, the call and the first
// bytes of the message share one cache line: a peer that waits for the phase has the whole of a small collective when
// the line arrives.
struct Step {
  alignas(kCacheLine) std::atomic<std::uint32_t> phase;  // futex word
  CallCard call;
  std::byte message[kInlineBytes];  // the data of a small collective; of a large one, where it lies (Place)
};
static_assert(offsetof(Step, message) == 32);

// A member's steps by the parity of the phase: it writes phase p over phase p - 2 once every peer has reached p - 1,
// so peers may read step p until they themselves reach p + 1.
struct GroupSlot {
  Step step[2];
  alignas(kCacheLine) std::atomic<std::uint32_t> sleepers;  // peers asleep on either phase word
};

// Layout of a group's control block: GroupSlot[size], then Mailbox[size][size] (from, to).
constexpr std::size_t group_block_bytes(int size) {
  const auto n = static_cast<std::size_t>(size);
  return n * sizeof(GroupSlot) + n * n * sizeof(Mailbox);
}
constexpr std::size_t world_block_bytes(int size) {
  return sizeof(WorldBlock) + static_cast<std::size_t>(size) * sizeof(WorldSlot);
}

}  // namespace drivetrain
