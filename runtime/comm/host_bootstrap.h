// How the processes of one host come together in shared memory: one of them prepares the blocks and tells the others
// two tickets, by whatever means it has (MPI, fork).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runtime/comm/host_comm.h"

namespace drivetrain {

struct HostTickets {
  BlockTicket world, group;
};

// What the leader holds until everybody has joined.
struct PreparedHost {
  HostTickets tickets;
  SharedBlock world, group;
};
PreparedHost prepare_host(BlockFactory& blocks, int size);

// Makes this process member `self` of the host. Collective over the host's members. `ranks` are their world ranks in
// order. Member 0 seals the blocks once all have joined.
std::unique_ptr<HostCommunicator> join_host(const HostTickets& tickets, std::shared_ptr<BlockFactory> blocks,
                                            std::vector<int> ranks, int self, const HostOptions& options,
                                            std::shared_ptr<JobSession> session);

}  // namespace drivetrain
