// The communicator of ranks on one host, threads or processes, over shared memory. Four paths: small messages travel
// inside the control block, symmetric memory is read and written where it lies, other memory is read by the kernel
// where it lets us (process_vm_readv), otherwise it passes through windows of staging memory.
#pragma once
#include <functional>
#include <memory>
#include <optional>
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
  enum class Path { kInline, kDirect, kCopied, kStaged };
  // One part of a collective: elements [begin, begin + count) of every share; views_ shows them per member.
  struct Window {
    Path path = Path::kInline;
    std::int64_t begin = 0, count = 0;
  };
  // What this member sees of one member's data; of its own, where it lies.
  struct View {
    std::byte* data = nullptr;
    std::size_t stride = 0;    // bytes between shares
    std::uint64_t remote = 0;  // ordinary memory of a peer: its address there, and no data here
    std::byte* share(int q) const { return data + static_cast<std::size_t>(q) * stride; }
  };
  struct Entered {
    CallRecord record;
    std::int64_t last_arrival_ns = 0;
    Path path = Path::kInline;
  };

  // Enters a collective that exposes `shares` equal pieces of `exposed` (nothing if absent) to the peers, agrees on the
  // path and shows the whole in views_ unless it is staged.
  Entered enter(CallRecord record, const Tensor& exposed, int shares);
  Work finish(const Entered& call, std::size_t bytes);
  // Enters, calls consume(window) for each part on all members in step, finishes.
  template <class Consume>
  Work run(CallRecord record, const Tensor& exposed, int shares, std::size_t bytes, const Consume& consume);
  template <class Consume>
  void run_staged(const CallRecord& record, const Tensor& exposed, int shares, const Consume& consume);
  void all_reduce_staged(const Tensor& x, ReduceOp op);

  // Whether `bytes` of ordinary memory per member are worth it, and the kernel lets every member read every other's.
  // Collective when it is first asked.
  bool can_copy(std::size_t bytes);
  // run() where it does: `share` of every member's shares passes through scratch memory window by window.
  void for_copied_windows(const CallRecord& record, const Tensor& exposed, int share,
                          const std::function<void(const Window&)>& consume);
  void all_reduce_copied(const Tensor& x, ReduceOp op);
  void fetch(int r, const View& from, std::size_t offset, std::byte* to, std::size_t bytes);
  std::byte* scratch_of(int r);
  std::size_t scratch_part() const;

  void show(int r, std::byte* data, std::size_t stride) { views_[static_cast<std::size_t>(r)] = {data, stride}; }
  const View& view(int r) const { return views_[static_cast<std::size_t>(r)]; }
  // Share q as the views show it from `offset` bytes on, in rank order, after `carry` if there is one.
  std::span<const std::byte* const> sources(int q, std::size_t offset = 0, const std::byte* carry = nullptr);
  // Member r's part of [0, count) when all share the work, on cache-line boundaries.
  struct Range {
    std::int64_t begin, count;
  };
  Range slice_of(int r, std::int64_t count, DType dtype) const;
  // Reduces the views' first shares into the targets for a range of elements.
  void reduce_range(const Range& range, DType dtype, ReduceOp op, std::span<const View> targets);
  // Member r's staging memory for a window, by the window's parity. Collective when it is first called.
  std::byte* staging(int r, std::int64_t window);
  // How many windows `shares` shares of `count` elements take, and the elements of a share in each but the last.
  struct Staging {
    std::int64_t step, windows;
  };
  Staging plan_staging(std::int64_t count, DType dtype, int shares) const;

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
  std::optional<bool> copies_;  // can_copy(), once known
  std::vector<std::byte> scratch_;
  std::vector<View> views_;          // of the current window
  std::vector<std::byte*> targets_;  // scratch
  std::vector<const std::byte*> sources_;
};

}  // namespace drivetrain
