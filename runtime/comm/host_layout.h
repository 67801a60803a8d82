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
// Collectives up to this many bytes per rank travel inside the slots: one barrier, no addresses.
inline constexpr std::size_t kInlineBytes = 4096;

// Where a tensor lies, in words that peers understand.
struct Place {
  static constexpr std::uint32_t kOrdinary = 0;           // nobody else can reach it
  static constexpr std::uint32_t kDirect = 0xffffffffu;   // offset is an address valid on every rank (threads)
  static constexpr std::uint32_t kNothing = 0xfffffffeu;  // the rank exposes nothing in this call
  std::uint32_t allocation = kOrdinary;                   // otherwise: number of a symmetric allocation
  std::uint64_t offset = 0;                               // bytes from the start of the rank's part
};

struct WorldSlot {
  alignas(kCacheLine) std::int32_t pid;
  std::uint64_t start_time;  // of the process, clock ticks after boot: guards against reused pids
  std::int32_t world_rank;
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

// A rank's progress through the barriers of one group. A futex word, so that waiters can sleep on it.
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

struct GroupSlot {
  PhaseFlag flag;
  alignas(kCacheLine) CallRecord call[2];  // by parity of the sequence number
  Place place[2];
  BlockTicket ticket[2];
  alignas(kCacheLine) std::byte data[2][kInlineBytes];  // by parity of the window number
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
