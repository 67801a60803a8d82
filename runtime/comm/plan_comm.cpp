#include "runtime/comm/plan_comm.h"

namespace drivetrain {
namespace {

class PlanCommunicator final : public Communicator {
 public:
  PlanCommunicator(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string transport() const override { return "plan"; }
  Work all_reduce(Tensor, ReduceOp) override { return {}; }
  Work all_gather(Tensor, Tensor) override { return {}; }
  Work reduce_scatter(Tensor, Tensor, ReduceOp) override { return {}; }
  Work broadcast(Tensor, int) override { return {}; }
  Work reduce(Tensor, int, ReduceOp) override { return {}; }
  Work all_to_all(Tensor, Tensor) override { return {}; }
  Work send(Tensor, int) override { return {}; }
  Work recv(Tensor, int) override { return {}; }
  void barrier() override {}
  std::unique_ptr<Communicator> split(int, int) override {
    throw Error(ErrorKind::kLogic, "a plan communicator cannot tell the size of a split; make one per group");
  }
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override { return Buffer(device, bytes); }
  Deadline set_deadline(Deadline deadline) override { return deadline; }
  void abort(const std::string&) noexcept override {}

 private:
  int rank_, size_;
};

}  // namespace

std::unique_ptr<Communicator> make_plan_communicator(int rank, int size) {
  return std::make_unique<PlanCommunicator>(rank, size);
}

}  // namespace drivetrain
