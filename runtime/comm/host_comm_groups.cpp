// How groups and the memory they share come to be.
#include <algorithm>

#include "runtime/comm/host_comm.h"

namespace drivetrain {

HostCommunicator::Shared HostCommunicator::share(int leader, std::size_t bytes, Commit commit) {
  HostWorld& world = group_->world();
  Shared shared;
  struct Offer {
    std::uint32_t id = 0;
    BlockTicket ticket;
  } offer;
  CallRecord record = make_record(CollectiveOp::kShare, DType::kU8, 0);
  try {
    if (leader == rank()) {
      offer.id = world.take_id();
      shared.block = world.blocks().create(bytes, offer.ticket);
      if (commit == Commit::kLeader) world.blocks().commit(shared.block, 0, bytes);
    }
    group_->put_message(offer);
    const std::int64_t last_arrival_ns = group_->enter(record);
    if (leader >= 0) {
      const auto theirs = group_->message_of<Offer>(leader);
      shared.id = theirs.id;
      if (leader != rank()) shared.block = world.blocks().open(theirs.ticket, bytes);
    }
    if (commit == Commit::kOwnPart) {
      const std::size_t part = bytes / static_cast<std::size_t>(size());
      world.blocks().commit(shared.block, part * static_cast<std::size_t>(rank()), part);
    }
    group_->meet();
    group_->leave(record, last_arrival_ns, 0);
  } catch (const Error& error) {
    if (shared.block.data && leader == rank()) world.blocks().seal(offer.ticket);
    world.fail(error.kind(), error.what());
    throw;
  }
  if (leader == rank()) world.blocks().seal(offer.ticket);
  return shared;
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  CallRecord record = make_record(CollectiveOp::kSplit, DType::kU8, 0);
  struct Wish {
    int color, key;
  };
  group_->put_message(Wish{color, key});
  group_->leave(record, group_->enter(record), 0);
  const auto wish_of = [&](int r) { return group_->message_of<Wish>(r); };
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (color >= 0 && wish_of(r).color == color) ranks.push_back(r);
  std::stable_sort(ranks.begin(), ranks.end(), [&](int a, int b) { return wish_of(a).key < wish_of(b).key; });
  Shared shared =
      share(ranks.empty() ? -1 : ranks.front(), group_block_bytes(static_cast<int>(ranks.size())), Commit::kLeader);
  if (ranks.empty()) return nullptr;
  const auto mine = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  std::vector<int> members;
  for (const int r : ranks) members.push_back(group_->member(r));
  return std::make_unique<HostCommunicator>(std::make_unique<HostGroup>(
      group_->shared_world(), std::move(shared.block), shared.id, std::move(members), mine));
}

Buffer HostCommunicator::symmetric_buffer(Device& device, std::size_t bytes) {
  const bool reachable_anyway = group_->world().options().reach == HostOptions::Reach::kEverywhere;
  CallRecord record = make_record(CollectiveOp::kAllocate, DType::kU8, 0);
  group_->put_message(bytes);
  group_->leave(record, group_->enter(record), 0);
  if (reachable_anyway || device.kind() != DeviceKind::kCpu) return Buffer(device, bytes);
  std::size_t largest = 1;
  for (int r = 0; r < size(); ++r) largest = std::max(largest, group_->message_of<std::size_t>(r));
  constexpr std::size_t kRound = std::size_t{64} << 10;
  const std::size_t stride = (largest + kRound - 1) / kRound * kRound;
  Shared shared = share(0, stride * static_cast<std::size_t>(size()), Commit::kOwnPart);
  std::byte* mine = shared.block.data + stride * static_cast<std::size_t>(rank());
  const auto world = group_->shared_world();
  world->add_allocation(shared.id, std::move(shared.block), stride, group_->members());
  return Buffer(mine, bytes, [world, id = shared.id](std::byte*) { world->drop_allocation(id); });
}

}  // namespace drivetrain
