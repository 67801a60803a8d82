#include "runtime/comm/host_world.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "runtime/comm/flight_file.h"
#include "runtime/comm/host_wait.h"
#include "runtime/comm/process_info.h"

namespace drivetrain {

HostWorld::HostWorld(std::shared_ptr<BlockFactory> blocks, SharedBlock block, std::vector<int> ranks, int self,
                     HostOptions options, std::shared_ptr<JobSession> session)
    : session_(std::move(session)),
      blocks_(std::move(blocks)),
      block_(std::move(block)),
      ranks_(std::move(ranks)),
      self_(self),
      options_(std::move(options)),
      recorder_(slot(self_).flight),
      transport_(blocks_->transport() == "threads" ? FlightTransport::kThreads : FlightTransport::kShm) {
  if (options_.host.empty()) options_.host = host_name();
  deadline_.limit = options_.timeout;
  WorldSlot& mine = slot(self_);
  mine.pid = getpid();
  mine.start_time = process_start_time(mine.pid);
  mine.world_rank = world_rank(self_);
  usable_cores(mine.cores);
}

int HostWorld::cores() const {
  int cores = 0;
  for (std::size_t word = 0; word < kCoreWords; ++word) {
    std::uint64_t any = 0;
    for (int i = 0; i < size(); ++i) any |= slot(i).cores[word];
    cores += std::popcount(any);
  }
  return cores;
}

WorldSlot& HostWorld::slot(int host_index) const {
  return reinterpret_cast<WorldSlot*>(block_.data + sizeof(WorldBlock))[host_index];
}

void HostWorld::add_allocation(std::uint32_t id, SharedBlock block, std::size_t stride, std::vector<int> members) {
  const std::lock_guard lock(mutex_);
  allocations_[id] = Allocation{std::move(block), stride, std::move(members)};
}

void HostWorld::drop_allocation(std::uint32_t id) noexcept {
  const std::lock_guard lock(mutex_);
  allocations_.erase(id);
}

Place HostWorld::locate(const std::byte* p, std::size_t bytes, const std::vector<int>& members) const {
  if (options_.reach == HostOptions::Reach::kEverywhere)
    return {Place::kDirect, static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p))};
  const std::lock_guard lock(mutex_);
  for (const auto& [id, allocation] : allocations_) {
    const auto part = std::find(allocation.members.begin(), allocation.members.end(), self_);
    const std::byte* base =
        allocation.block.data + static_cast<std::size_t>(part - allocation.members.begin()) * allocation.stride;
    if (p < base || p + bytes > base + allocation.stride) continue;
    const bool all_reach = std::all_of(members.begin(), members.end(), [&](int m) {
      return std::find(allocation.members.begin(), allocation.members.end(), m) != allocation.members.end();
    });
    if (all_reach) return {id, static_cast<std::uint64_t>(p - base)};
    return {};
  }
  return {};
}

std::byte* HostWorld::resolve(int owner, const Place& place) const {
  if (place.allocation == Place::kDirect)
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(place.offset));
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(place.allocation);
  if (found == allocations_.end())
    throw Error(ErrorKind::kLogic, "rank " + std::to_string(world_rank(owner)) + " uses symmetric allocation " +
                                       std::to_string(place.allocation) + ", which rank " +
                                       std::to_string(world_rank(self_)) +
                                       " has already released: release symmetric buffers on all ranks together");
  const Allocation& allocation = found->second;
  const auto part = std::find(allocation.members.begin(), allocation.members.end(), owner);
  return allocation.block.data + static_cast<std::size_t>(part - allocation.members.begin()) * allocation.stride +
         place.offset;
}

Deadline HostWorld::deadline() const {
  const std::lock_guard lock(mutex_);
  return deadline_;
}

Deadline HostWorld::set_deadline(Deadline deadline) {
  const std::lock_guard lock(mutex_);
  return std::exchange(deadline_, deadline);
}

void HostWorld::fail(ErrorKind kind, const std::string& reason) noexcept {
  if (!mark_failed(kind, reason)) return;
  if (on_failure_) on_failure_(kind, reason);
  write_recorders(reason);  // after the others know: a file system may take its time
}

void HostWorld::take_failure(ErrorKind kind, const std::string& reason) noexcept {
  if (mark_failed(kind, reason)) write_recorders(reason);
}

bool HostWorld::mark_failed(ErrorKind kind, const std::string& reason) noexcept {
  if (session_) session_->spoil();
  std::uint32_t expected = WorldBlock::kFine;
  if (!header().failed.compare_exchange_strong(expected, WorldBlock::kWriting)) return false;
  header().failure_kind = static_cast<std::uint32_t>(kind);
  const std::size_t n = std::min(reason.size(), WorldBlock::kReasonBytes - 1);
  std::memcpy(header().reason, reason.data(), n);
  header().reason[n] = '\0';
  header().failed.store(WorldBlock::kFailed, std::memory_order_release);
  return true;
}

void HostWorld::write_recorders(const std::string& reason) const noexcept {
  if (options_.recorder_file.empty()) return;
  try {
    FlightFile file;
    file.host = options_.host;
    file.reason = reason;
    file.wall_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    file.steady_ns = steady_now_ns();
    for (int i = 0; i < size(); ++i) {
      const FlightLog& log = slot(i).flight;
      file.ranks.push_back(
          {world_rank(i), slot(i).pid, state_of(i), log.calls.load(), flight_groups(log), flight_entries(log)});
    }
    write_flight_file(options_.recorder_file, file);
  } catch (const std::exception& error) {
    // The failure itself matters more; it goes on without its record.
    std::fprintf(stderr, "drivetrain: the flight recorder was not written: %s\n", error.what());
  }
}

void HostWorld::throw_failure() const {
  if (session_) session_->spoil();
  throw Error(static_cast<ErrorKind>(header().failure_kind), header().reason);
}

std::string HostWorld::describe_member(int host_index) const {
  return report(host_index).describe();
}

RankReport HostWorld::report(int host_index) const {
  RankReport report = report_of(slot(host_index).flight);
  report.world_rank = world_rank(host_index);
  report.pid = slot(host_index).pid;
  report.state = state_of(host_index);
  options_.host.copy(report.host.data(), report.host.size() - 1);
  return report;
}

std::vector<RankReport> HostWorld::survey() const {
  return survey_ ? survey_() : reports();
}

std::vector<RankReport> HostWorld::reports() const {
  std::vector<RankReport> all;
  for (int i = 0; i < size(); ++i) all.push_back(report(i));
  return all;
}

RankState HostWorld::state_of(int host_index) const {
  const WorldSlot& s = slot(host_index);
  if (s.left.load(std::memory_order_acquire) != 0) return RankState::kLeft;
  switch (process_state(s.pid, s.start_time)) {
    case ProcessState::kRunning:
      return RankState::kRunning;
    case ProcessState::kStopped:
      return RankState::kStopped;
    case ProcessState::kGone:
      return RankState::kGone;
    case ProcessState::kUnknown:
      break;
  }
  return RankState::kUnknown;
}

int HostWorld::find_dead_successor() const {
  for (int d = 1; d < size(); ++d) {
    const int i = (self_ + d) % size();
    const RankState state = state_of(i);
    if (state == RankState::kGone) return i;
    if (state == RankState::kRunning || state == RankState::kStopped) return -1;
  }
  return -1;
}

bool HostWorld::alive(int host_index) const {
  const WorldSlot& s = slot(host_index);
  return s.left.load(std::memory_order_acquire) == 0 && process_state(s.pid, s.start_time) != ProcessState::kGone;
}

}  // namespace drivetrain
