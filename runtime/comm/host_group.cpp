#include "runtime/comm/host_group.h"

#include <algorithm>

namespace drivetrain {
HostGroup::HostGroup(std::shared_ptr<HostWorld> world, SharedBlock block, std::uint32_t id, std::vector<int> members,
                     int rank)
    : world_(std::move(world)), block_(std::move(block)), id_(id), members_(std::move(members)), rank_(rank) {
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

std::int64_t HostGroup::enter(CallRecord& call) {
  world_->check();
  call.sequence = ++sequence_;
  call.arrival_ns = steady_now_ns();
  current_ = call;
  step(rank_, phase_ + 1).call = CallCard::pack(call);
  arrive();
  world_->note_call(call_group(), call);  // while the news travels to the peers
  wait_for_all();
  // Everybody has told its cores before its first call.
  if (sequence_ == 1) cores_ = world_->cores();
  const CallCard& first = step(0, phase_).call;
  std::int64_t last = first.arrival_ns;
  call.last_rank = 0;
  for (int r = 1; r < size(); ++r) {
    const CallCard& other = step(r, phase_).call;
    if (world_->options().check && !first.same_call(other)) fail_mismatch(r);
    if (other.arrival_ns <= last) continue;
    last = other.arrival_ns;
    call.last_rank = r;
  }
  return last;
}

void HostGroup::meet() {
  arrive();
  wait_for_all();
}

void HostGroup::arrive() {
  ++phase_;
  step(rank_, phase_).phase.store(phase_, std::memory_order_release);
  wake(counter(rank_, phase_));
}

void HostGroup::wait_for_all() {
  for (int d = 1; d < size(); ++d) {
    const Counter peer = counter((rank_ + d) % size(), phase_);
    if (!peer.reached(phase_)) wait(peer, phase_, -1, current_);
  }
}

CollectiveTiming HostGroup::leave(const CallRecord& call, std::int64_t last_arrival_ns, std::size_t bytes) {
  const CollectiveTiming timing{call.arrival_ns, last_arrival_ns, steady_now_ns(), static_cast<std::int64_t>(bytes),
                                call.last_rank};
  world_->note_end(call, timing);
  return timing;
}

void HostGroup::wait(const Counter& counter, std::uint32_t target, int peer, const CallRecord& call) {
  Patience patience(cores_ < world_->size() ? Patience::Cores::kCrowded : Patience::Cores::kEnough);
  std::int64_t since_ns = 0;
  for (;;) {
    const std::uint32_t seen = counter.word.load(std::memory_order_acquire);
    if (reached(seen, target)) return;
    if (!patience.pause(counter, seen)) continue;
    if (since_ns == 0) since_ns = steady_now_ns();
    if (idle_) idle_();
    if (!counter.reached(target)) look_around(counter, target, peer, call, since_ns);
  }
}

void HostGroup::look_around(const Counter& awaited, std::uint32_t target, int peer, const CallRecord& call,
                            std::int64_t waiting_since_ns) {
  world_->waiting();
  world_->check();
  const std::int64_t now_ns = steady_now_ns();
  if (now_ns >= next_life_check_ns_) {
    next_life_check_ns_ = now_ns + std::chrono::nanoseconds(world_->options().life_check).count();
    for (int r = 0; r < size(); ++r) {
      const auto late = [&] {
        return peer < 0 ? !counter(r, target).reached(target) : r == peer && !awaited.reached(target);
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
  std::vector<int> awaited;
  for (int r = 0; r < size(); ++r) {
    const bool late = peer >= 0 ? r == peer : !counter(r, target).reached(target);
    if (late) awaited.push_back(world_->world_rank(member(r)));
  }
  return world_->name_absent(awaited);
}

void HostGroup::fail_mismatch(int other) const {
  const auto called = [&](int r) {
    return "rank " + std::to_string(world_->world_rank(member(r))) + " called " +
           step(r, phase_).call.unpack(sequence_).describe();
  };
  fail(ErrorKind::kComm, "mismatched calls in " + describe() + ", call #" + std::to_string(sequence_) + ": " +
                             called(0) + ", " + called(other));
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
