// The mechanics of one group of ranks on a host: entering a collective (publish, wait, compare) and barriers inside it.
// The collectives themselves are in host_comm.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/comm/host_layout.h"
#include "runtime/comm/host_wait.h"
#include "runtime/comm/host_world.h"

namespace drivetrain {

class HostGroup {
 public:
  // `members` are host indices in group order. The block is group_block_bytes(members.size()) of zeroed shared memory.
  HostGroup(std::shared_ptr<HostWorld> world, SharedBlock block, std::uint32_t id, std::vector<int> members,
            int rank);

  void set_recording(Recording recording) { recording_ = recording; }

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  std::uint32_t id() const { return id_; }
  // What the flight recorder calls a collective's, a message's group.
  std::uint32_t call_group() const { return recording_ == Recording::kAll ? id_ : HostWorld::kUnrecorded; }
  std::uint32_t message_group() const { return recording_ != Recording::kNothing ? id_ : HostWorld::kUnrecorded; }
  HostWorld& world() const { return *world_; }
  const std::shared_ptr<HostWorld>& shared_world() const { return world_; }
  const std::vector<int>& members() const { return members_; }
  int member(int r) const { return members_[static_cast<std::size_t>(r)]; }
  // A rank's share of the host's cores: more threads would take them from peers.
  int threads() const { return std::max(1, cores_ / world_->size()); }
  std::string describe() const;  // "group {0, 2} of the world"
  // "barrier() #3 in group {0, 2} of the world", with the call it is a step of.
  std::string describe(const CallRecord& call) const;

  // What this member shows with its next call: kInlineBytes to fill before enter().
  std::byte* message() const { return step(rank_, phase_ + 1).message; }
  template <class T>
  void put_message(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kInlineBytes);
    std::memcpy(message(), &value, sizeof value);
  }
  // Publishes the call and the message, waits for all members and compares. Throws kComm naming both calls on every
  // rank when they differ, kHang when the deadline passes, kComm when a member died or the world failed. Returns the
  // last arrival.
  std::int64_t enter(CallRecord& call);
  // What the members showed; to be read after enter() and before this member's next meet() or enter().
  std::byte* message_of(int r) const { return step(r, phase_).message; }
  template <class T>
  T message_of(int r) const {
    T value;
    std::memcpy(&value, message_of(r), sizeof value);
    return value;
  }
  // All members meet inside the current collective.
  void meet();
  // The collective is over on this member.
  CollectiveTiming leave(const CallRecord& call, std::int64_t last_arrival_ns, std::size_t bytes);
  // Waits until `counter` reaches `target`; `peer` is the member to blame, -1 for everybody behind `target`.
  void wait(const Counter& counter, std::uint32_t target, int peer, const CallRecord& call);

  // Fails the world for everybody, and throws here.
  [[noreturn]] void fail(ErrorKind kind, const std::string& reason) const;

  Mailbox& mailbox(int from, int to) const;

  // Called while waiting, to move messages that are on their way.
  void set_idle(std::function<void()> idle) { idle_ = std::move(idle); }

 private:
  GroupSlot& slot(int r) const { return reinterpret_cast<GroupSlot*>(block_.data)[r]; }
  Step& step(int r, std::uint32_t phase) const { return slot(r).step[phase & 1]; }
  Counter counter(int r, std::uint32_t phase) const { return {step(r, phase).phase, slot(r).sleepers}; }
  void arrive();
  void wait_for_all();
  [[noreturn]] void fail_mismatch(int other) const;
  void look_around(const Counter& counter, std::uint32_t target, int peer, const CallRecord& call,
                   std::int64_t waiting_since_ns);
  std::string absent(std::uint32_t target, int peer) const;

  std::shared_ptr<HostWorld> world_;
  SharedBlock block_;
  std::uint32_t id_;
  std::vector<int> members_;
  int rank_;
  Recording recording_ = Recording::kAll;
  int cores_ = 0;  // of the host's ranks together; 0 until the first call
  std::uint64_t sequence_ = 0;
  std::uint32_t phase_ = 0;
  CallRecord current_;
  std::int64_t next_life_check_ns_ = 0;
  std::function<void()> idle_;
};

}  // namespace drivetrain
