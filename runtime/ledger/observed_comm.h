// A communicator that charges its collectives to a ledger under the name of an axis, and changes nothing else. Right for
// transports that finish inside the call and for those that go on behind it: time spent in the call or in Work::wait() is
// exposed, what happens in between is hidden behind compute. A barrier moves nothing: all of it is waiting.
#pragma once
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/ledger/step_ledger.h"

namespace drivetrain {

class ObservedCommunicator final : public Communicator {
 public:
  // world_ranks[r]: the world rank of group rank r. The ledger outlives every collective.
  ObservedCommunicator(std::unique_ptr<Communicator> inner, CommAxis axis, std::vector<int> world_ranks,
                       StepLedger& ledger);

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string transport() const override { return inner_->transport(); }
  bool asynchronous() const override { return inner_->asynchronous(); }

  Work all_reduce(Tensor x, ReduceOp op) override;
  Work all_gather(Tensor out, Tensor in) override;
  Work reduce_scatter(Tensor out, Tensor in, ReduceOp op) override;
  Work broadcast(Tensor x, int root) override;
  Work reduce(Tensor x, int root, ReduceOp op) override;
  Work all_to_all(Tensor out, Tensor in) override;
  Work send(Tensor x, int to) override;
  Work recv(Tensor x, int from) override;
  void barrier() override;

  // Set-up, not observed; a group split off is a plain one.
  std::unique_ptr<Communicator> split(int color, int key) override { return inner_->split(color, key); }
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override {
    return inner_->symmetric_buffer(device, bytes);
  }
  Deadline set_deadline(Deadline deadline) override { return inner_->set_deadline(deadline); }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

 private:
  template <class Call>
  Work observe(CollectiveOp op, const Call& call);
  CollectiveSpan span(CollectiveOp op);

  std::unique_ptr<Communicator> inner_;
  CommAxis axis_;
  // Shared with works in flight, which may outlive this communicator.
  std::shared_ptr<const std::vector<int>> world_ranks_;
  StepLedger& ledger_;
  std::uint64_t sequence_ = 0;
};

}  // namespace drivetrain
