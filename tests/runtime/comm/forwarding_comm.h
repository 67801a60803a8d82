// A communicator that passes every call on and tells what it sees: before and after each collective, on whichever
// thread makes it.
#pragma once
#include <functional>
#include <memory>

#include "runtime/comm/communicator.h"

namespace drivetrain::test {

class ForwardingCommunicator final : public Communicator {
 public:
  enum class Moment { kBefore, kAfter };
  using Watch = std::function<void(Moment)>;
  ForwardingCommunicator(std::unique_ptr<Communicator> inner, Watch watch)
      : inner_(std::move(inner)), watch_(std::move(watch)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::string transport() const override { return inner_->transport(); }

  Work all_reduce(Tensor x, ReduceOp op) override {
    return watched([&] { return inner_->all_reduce(x, op); });
  }
  Work all_gather(Tensor out, Tensor in) override {
    return watched([&] { return inner_->all_gather(out, in); });
  }
  Work reduce_scatter(Tensor out, Tensor in, ReduceOp op) override {
    return watched([&] { return inner_->reduce_scatter(out, in, op); });
  }
  Work broadcast(Tensor x, int root) override {
    return watched([&] { return inner_->broadcast(x, root); });
  }
  Work reduce(Tensor x, int root, ReduceOp op) override {
    return watched([&] { return inner_->reduce(x, root, op); });
  }
  Work all_to_all(Tensor out, Tensor in) override {
    return watched([&] { return inner_->all_to_all(out, in); });
  }
  Work send(Tensor x, int to) override {
    return watched([&] { return inner_->send(x, to); });
  }
  Work recv(Tensor x, int from) override {
    return watched([&] { return inner_->recv(x, from); });
  }
  void barrier() override { inner_->barrier(); }
  std::unique_ptr<Communicator> split(int color, int key) override {
    auto part = inner_->split(color, key);
    return part ? std::make_unique<ForwardingCommunicator>(std::move(part), watch_) : nullptr;
  }
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override {
    return inner_->symmetric_buffer(device, bytes);
  }
  Deadline set_deadline(Deadline deadline) override { return inner_->set_deadline(deadline); }
  void abort(const std::string& reason) noexcept override { inner_->abort(reason); }

 private:
  template <class Call>
  Work watched(const Call& call) {
    watch_(Moment::kBefore);
    Work work = call();
    watch_(Moment::kAfter);
    return work;
  }

  std::unique_ptr<Communicator> inner_;
  Watch watch_;
};

}  // namespace drivetrain::test
