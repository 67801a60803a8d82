// A group of ranks on several hosts: shared memory inside each host, MPI across. Of a reduction only one rank's share
// crosses per rank, as a chain over the hosts in rank order, so that the sum is that of the flat transports, bit for bit.
// Hosts hold equally many members of the group, in blocks: group rank = host index * members per host + index there.
#pragma once
#include <memory>
#include <vector>

#include "runtime/comm/agreeing_comm.h"
#include "runtime/comm/host_comm.h"

namespace drivetrain {

class HierarchicalCommunicator final : public Communicator {
 public:
  // `host`: the members on this host. `rail`: the members with this rank's index on every host. `all`: everybody.
  HierarchicalCommunicator(std::unique_ptr<HostCommunicator> host, std::unique_ptr<AgreeingCommunicator> rail,
                           std::unique_ptr<AgreeingCommunicator> all);

  int rank() const override { return all_->rank(); }
  int size() const override { return all_->size(); }
  std::string transport() const override { return "hierarchical"; }

  Work all_reduce(Tensor x, ReduceOp op) override;
  Work all_gather(Tensor out, Tensor in) override;
  Work reduce_scatter(Tensor out, Tensor in, ReduceOp op) override;
  Work broadcast(Tensor x, int root) override;
  Work reduce(Tensor x, int root, ReduceOp op) override;
  Work all_to_all(Tensor out, Tensor in) override;
  Work send(Tensor x, int to) override;
  Work recv(Tensor x, int from) override;
  void barrier() override;
  std::unique_ptr<Communicator> split(int color, int key) override;
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override;
  Deadline set_deadline(Deadline deadline) override;
  void abort(const std::string& reason) noexcept override { all_->abort(reason); }

 private:
  int hosts() const { return rail_->size(); }
  int host_of(int r) const { return r / host_->size(); }
  int index_of(int r) const { return r % host_->size(); }
  // Begins a collective of the whole group: all members bring the same call.
  void agree(CallRecord& record);
  Work finished(const CallRecord& record, std::size_t bytes) const;
  // This rank's link of the chain: takes the sum so far from the previous host, adds this host's members, passes it
  // on. `in` holds one share per member of the host, in the carry type; `share` receives the sum so far.
  void chain(const Tensor& share, const Tensor& in, ReduceOp op);
  // The end of the chain gives the finished share to `to_host`, -1 for all.
  void return_share(const Tensor& share, ReduceOp op, int to_host);
  void reduce_windows(const Tensor& x, ReduceOp op, int root);  // root -1: everybody
  bool ends_chain() const { return rail_->rank() == hosts() - 1; }

  std::unique_ptr<HostCommunicator> host_;
  std::unique_ptr<AgreeingCommunicator> rail_, all_;
  std::uint32_t group_ = 0;  // number in the flight recorder
  std::uint64_t sequence_ = 0;
  std::int64_t last_arrival_ns_ = 0;  // of the current collective
  std::vector<std::byte> carry_, scratch_, shares_;
};

// The group of `all`'s members: host transport when they share a host, hierarchical when the hosts hold equal blocks,
// MPI otherwise. Collective over `all`; `host` holds its members on this host.
std::unique_ptr<Communicator> make_group(std::unique_ptr<HostCommunicator> host,
                                         std::unique_ptr<AgreeingCommunicator> all);

}  // namespace drivetrain
