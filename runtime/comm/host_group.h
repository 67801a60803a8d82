// The mechanics of one group of ranks on a host: entering a collective (publish, wait, compare), barriers inside it,
// windows of staging memory. The collectives themselves are in host_comm.
#pragma once
#include <functional>
#include <memory>
#include <string>
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
  std::string describe() const;  // "group {0, 2} of the world"
  // "barrier() #3 in group {0, 2} of the world", with the call it is a step of.
  std::string describe(const CallRecord& call) const;

  // Publishes the call, waits for all members and compares. Throws kComm naming both calls on every rank when they
  // differ, kHang when the deadline passes, kComm when a member died or the world failed. Returns the last arrival.
  std::int64_t enter(CallRecord& call, const Place& place, const BlockTicket& ticket);
  // The call another member published; valid from enter() until the next enter().
  const CallRecord& call_of(int r) const { return slot(r).call[parity_]; }
  const Place& place_of(int r) const { return slot(r).place[parity_]; }
  const BlockTicket& ticket_of(int r) const { return slot(r).ticket[parity_]; }
  // All members meet inside the current collective.
  void meet();
  // Waits until `flag` reaches `target`; `peer` is the member to blame, -1 for everybody behind `target`.
  void wait(PhaseFlag& flag, std::uint32_t target, int peer, const CallRecord& call);

  // Fails the world for everybody, and throws here.
  [[noreturn]] void fail(ErrorKind kind, const std::string& reason) const;

  // Windows: what a member writes for its peers. A window may be written again two windows later, provided that the
  // members met in every window between writing and reading.
  int next_window() { return static_cast<int>(window_++ & 1); }
  std::byte* inline_data(int r, int window) const { return slot(r).data[window]; }
  Mailbox& mailbox(int from, int to) const;

  // Called while waiting, to move messages that are on their way.
  void set_idle(std::function<void()> idle) { idle_ = std::move(idle); }

 private:
  GroupSlot& slot(int r) const { return reinterpret_cast<GroupSlot*>(block_.data)[r]; }
  void compare(const CallRecord& mine) const;
  void look_around(const PhaseFlag& flag, std::uint32_t target, int peer, const CallRecord& call,
                   std::int64_t waiting_since_ns);
  std::string absent(std::uint32_t target, int peer) const;

  std::shared_ptr<HostWorld> world_;
  SharedBlock block_;
  std::uint32_t id_;
  std::vector<int> members_;
  int rank_;
  Recording recording_ = Recording::kAll;
  Patience::Cores cores_;
  std::uint64_t sequence_ = 0, window_ = 0;
  std::uint32_t phase_ = 0;
  std::size_t parity_ = 0;
  CallRecord current_;
  std::int64_t next_life_check_ns_ = 0;
  std::function<void()> idle_;
};

}  // namespace drivetrain
