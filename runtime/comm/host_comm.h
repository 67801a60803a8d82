// The communicator of ranks on one host, threads or processes, over shared memory. Three paths: small messages travel
// inside the control block, symmetric memory is read and written where it lies, other memory passes through windows of
// staging memory.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/comm/agreeing_comm.h"
#include "runtime/comm/host_group.h"
#include "runtime/comm/host_mail.h"

namespace drivetrain {

class HostCommunicator final : public AgreeingCommunicator {
 public:
  explicit HostCommunicator(std::unique_ptr<HostGroup> group);

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::string transport() const override;

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
  void abort(const std::string& reason) noexcept override;
  std::uint32_t become_part(Recording recording) override;
  std::int64_t agree(CallRecord& call) override;

  // reduce_scatter() whose additions start from `carry` (as out) instead of nothing: the link of a chain over hosts.
  // An absent carry starts the chain.
  Work reduce_scatter_onto(Tensor out, Tensor in, ReduceOp op, Tensor carry);
  const std::shared_ptr<HostWorld>& shared_world() const { return group_->shared_world(); }

 private:
  // How the data of a collective reaches the peers.
  enum class Path { kInline, kDirect, kStaged };
  // One part of a collective: elements [begin, begin + count) of every share. views[r] is what member r exposes of it,
  // its shares `stride` bytes apart.
  struct Window {
    Path path = Path::kInline;
    std::int64_t begin = 0, count = 0;
    std::size_t stride = 0;
    const std::vector<std::byte*>& views;
  };

  // Runs a collective: exposes `shares` equal pieces of `exposed` to the peers and calls consume(window) for each part,
  // on all members in step. An absent `exposed` exposes nothing.
  template <class Consume>
  Work run(CallRecord record, const Tensor& exposed, int shares, std::size_t bytes, const Consume& consume);
  template <class Consume>
  void run_direct(std::int64_t count, std::size_t stride, const Consume& consume);
  template <class Consume>
  void run_staged(const CallRecord& record, const Tensor& exposed, int shares, const Consume& consume);
  Path choose_path() const;
  void pack(std::byte* area, const Tensor& exposed, int shares, std::int64_t begin, std::int64_t count) const;
  // This member's part of [0, count) when all share the work, on cache-line boundaries.
  struct Range {
    std::int64_t begin, count;
  };
  Range slice_of(int r, std::int64_t count, DType dtype) const;
  // Reduces this member's slice of the window's first share into the same slice of every target.
  void reduce_slice(const Window& window, DType dtype, ReduceOp op, std::span<std::byte* const> targets);
  std::byte* staging(int r, int window) const;

  struct Shared {
    SharedBlock block;
    std::uint32_t id = 0;
  };
  // Collective: member `leader` creates a block of `bytes`, others with the same leader open it; -1 only keeps step.
  // The leader commits it, or each member the equal part that it will use.
  enum class Commit { kLeader, kOwnPart };
  Shared share(int leader, std::size_t bytes, Commit commit);

  std::unique_ptr<HostGroup> group_;
  HostMail mail_;
  SharedBlock staging_;
  std::vector<std::byte*> views_, targets_;  // scratch of run() and reduce_slice()
  std::vector<const std::byte*> sources_;
};

}  // namespace drivetrain
