#include "runtime/comm/host_bootstrap.h"

#include <numeric>

namespace drivetrain {

PreparedHost prepare_host(BlockFactory& blocks, int size) {
  PreparedHost host;
  host.world = blocks.create(world_block_bytes(size), host.tickets.world);
  blocks.commit(host.world, 0, host.world.bytes);
  host.group = blocks.create(group_block_bytes(size), host.tickets.group);
  blocks.commit(host.group, 0, host.group.bytes);
  return host;
}

std::unique_ptr<HostCommunicator> join_host(const HostTickets& tickets, std::shared_ptr<BlockFactory> blocks,
                                            std::vector<int> ranks, int self, const HostOptions& options,
                                            std::shared_ptr<JobSession> session) {
  const auto size = static_cast<int>(ranks.size());
  SharedBlock world_block = blocks->open(tickets.world, world_block_bytes(size));
  SharedBlock group_block = blocks->open(tickets.group, group_block_bytes(size));
  std::vector<int> members(ranks.size());
  std::iota(members.begin(), members.end(), 0);
  auto world = std::make_shared<HostWorld>(blocks, std::move(world_block), std::move(ranks), self, options,
                                           std::move(session));
  auto communicator = std::make_unique<HostCommunicator>(
      std::make_unique<HostGroup>(std::move(world), std::move(group_block), 0, std::move(members), self));
  communicator->barrier();
  if (self == 0) {
    blocks->seal(tickets.world);
    blocks->seal(tickets.group);
  }
  return communicator;
}

}  // namespace drivetrain
