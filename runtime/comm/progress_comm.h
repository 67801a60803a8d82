// A communicator whose collectives go on while the caller computes: wraps another one and makes its calls on a thread.
// Small calls with nothing before them are made at once, by the caller.
#pragma once
#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/comm/progress_queue.h"
#include "runtime/comm/world.h"

namespace drivetrain {

class ProgressCommunicator final : public Communicator {
 public:
  // Below this a change of threads costs more than the collective (bytes of this rank's larger tensor).
  static constexpr std::size_t kInlineBytes = std::size_t{64} << 10;

  explicit ProgressCommunicator(std::unique_ptr<Communicator> inner, std::size_t inline_bytes = kInlineBytes);
  // Finishes what is on its way; after an exception, see ProgressQueue::close().
  ~ProgressCommunicator() override { queue_->close(); }

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string transport() const override { return inner_->transport(); }
  bool asynchronous() const override { return true; }

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
  Deadline set_deadline(Deadline deadline) override { return inner_->set_deadline(deadline); }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

 private:
  template <class Call>
  Work run(std::size_t bytes, const Call& call);

  std::unique_ptr<Communicator> inner_;
  std::size_t inline_bytes_;
  std::shared_ptr<ProgressQueue> queue_;  // of its own thread; Works refer to it
};

// `cores` are those that the ranks of this host may use, all together.
bool wants_progress(const CommOptions& options, int cores, int ranks_on_host);

}  // namespace drivetrain
