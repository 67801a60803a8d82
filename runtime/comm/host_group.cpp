#include "runtime/comm/host_group.h"

#include <algorithm>

namespace drivetrain {
HostGroup::HostGroup(std::shared_ptr<HostWorld> world, SharedBlock block, std::uint32_t id, std::vector<int> members,
                     int rank)
    : world_(std::move(world)),
      block_(std::move(block)),
      id_(id),
      members_(std::move(members)),
      rank_(rank),
      cores_(usable_cores() >= world_->size() ? Patience::Cores::kEnough : Patience::Cores::kCrowded) {
  world_->name_group(id_, size(), describe());
}

std::string HostGroup::describe() const {
  if (size() == world_->job_size()) return "the world of " + std::to_string(size()) + " ranks";
  constexpr int kShown = 8;
  std::string s = "group {";
  for (int r = 0; r < std::min(size(), kShown); ++r)
    s += (r ? ", " : "") + std::to_string(world_->world_rank(member(r)));
  if (size() > kShown) s += ", ... " + std::to_string(size()) + " ranks";
  return s + "} of the world";
}

std::string HostGroup::describe(const CallRecord& call) const {
  std::string s = call.describe() + " #" + std::to_string(call.sequence) + " in " + describe();
  if (recording_ != Recording::kAll) s += ", a step of " + describe_newest(world_->recorder().log());
  return s;
}

std::int64_t HostGroup::enter(CallRecord& call, const Place& place, const BlockTicket& ticket) {
  world_->check();
  call.sequence = ++sequence_;
  call.arrival_ns = steady_now_ns();
  parity_ = static_cast<std::size_t>(sequence_ & 1);
  current_ = call;
  GroupSlot& mine = slot(rank_);
  mine.call[parity_] = call;
  mine.place[parity_] = place;
  mine.ticket[parity_] = ticket;
  world_->note_call(call_group(), call);
  meet();
  if (world_->options().check) compare(call);
  std::int64_t last = call.arrival_ns;
  for (int r = 0; r < size(); ++r) last = std::max(last, call_of(r).arrival_ns);
  return last;
}

void HostGroup::meet() {
  ++phase_;
  publish(slot(rank_).flag, phase_);
  for (int d = 1; d < size(); ++d) {
    const int r = (rank_ + d) % size();
    PhaseFlag& flag = slot(r).flag;
    if (!reached(flag.phase.load(std::memory_order_acquire), phase_)) wait(flag, phase_, -1, current_);
  }
}

void HostGroup::wait(PhaseFlag& flag, std::uint32_t target, int peer, const CallRecord& call) {
  Patience patience(cores_);
  std::int64_t since_ns = 0;
  for (;;) {
    const std::uint32_t seen = flag.phase.load(std::memory_order_acquire);
    if (reached(seen, target)) return;
    if (!patience.pause(flag, seen)) continue;
    if (since_ns == 0) since_ns = steady_now_ns();
    if (idle_) idle_();
    if (!reached(flag.phase.load(std::memory_order_acquire), target)) look_around(flag, target, peer, call, since_ns);
  }
}

void HostGroup::look_around(const PhaseFlag& flag, std::uint32_t target, int peer, const CallRecord& call,
                            std::int64_t waiting_since_ns) {
  world_->waiting();
  world_->check();
  const std::int64_t now_ns = steady_now_ns();
  if (now_ns >= next_life_check_ns_) {
    next_life_check_ns_ = now_ns + std::chrono::nanoseconds(world_->options().life_check).count();
    for (int r = 0; r < size(); ++r) {
      const auto late = [&] {
        const PhaseFlag& awaited = peer >= 0 ? flag : slot(r).flag;
        return (peer < 0 || r == peer) && !reached(awaited.phase.load(std::memory_order_acquire), target);
      };
      if (r != rank_ && missed(late, [&] { return world_->alive(member(r)); }))
        fail(ErrorKind::kComm, world_->describe_member(member(r)) + " is gone; rank " +
                                   std::to_string(world_->world_rank(member(rank_))) + " waits for it in " +
                                   describe(call));
    }
  }
  const Deadline deadline = world_->deadline();
  if (now_ns - waiting_since_ns > std::chrono::nanoseconds(deadline.limit).count())
    fail(ErrorKind::kHang, describe(call) + " did not finish within its deadline of " +
                               std::to_string(deadline.limit.count()) + " ms; absent: " + absent(target, peer) +
                               ". Raise " + deadline.key + " if this is expected");
}

std::string HostGroup::absent(std::uint32_t target, int peer) const {
  std::string s;
  for (int r = 0; r < size(); ++r) {
    const bool late = peer >= 0 ? r == peer : !reached(slot(r).flag.phase.load(std::memory_order_acquire), target);
    if (late) s += (s.empty() ? "" : ", ") + world_->describe_member(member(r));
  }
  return s;
}

void HostGroup::compare(const CallRecord& mine) const {
  for (int r = 1; r < size(); ++r) {
    const CallRecord &first = call_of(0), &other = call_of(r);
    if (first.same_call(other)) continue;
    fail(ErrorKind::kComm, "mismatched calls in " + describe() + ", call #" + std::to_string(mine.sequence) +
                               ": rank " + std::to_string(world_->world_rank(member(0))) + " called " +
                               first.describe() + ", rank " + std::to_string(world_->world_rank(member(r))) +
                               " called " + other.describe());
  }
}

void HostGroup::fail(ErrorKind kind, const std::string& reason) const {
  world_->fail(kind, reason);
  throw Error(kind, reason);
}

Mailbox& HostGroup::mailbox(int from, int to) const {
  auto* boxes = reinterpret_cast<Mailbox*>(block_.data + static_cast<std::size_t>(size()) * sizeof(GroupSlot));
  return boxes[from * size() + to];
}

}  // namespace drivetrain
