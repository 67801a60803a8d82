#include "runtime/comm/self_comm.h"

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/host_wait.h"
#include "runtime/comm/tensor_checks.h"

namespace drivetrain {
namespace {

Work done(const Tensor& x) {
  const std::int64_t now_ns = steady_now_ns();
  return Work(CollectiveTiming{now_ns, now_ns, now_ns, static_cast<std::int64_t>(x.bytes())});
}

Work copied(CollectiveOp op, const Tensor& out, const Tensor& in) {
  check_shares(op, out, in, 1);
  copy_bytes(out.data, in.data, in.bytes());
  return done(in);
}

// Reductions over one rank, averages included, are the input itself.
class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::string transport() const override { return "self"; }

  Work all_reduce(Tensor x, ReduceOp) override { return done(x); }
  Work all_gather(Tensor out, Tensor in) override { return copied(CollectiveOp::kAllGather, out, in); }
  Work reduce_scatter(Tensor out, Tensor in, ReduceOp) override {
    return copied(CollectiveOp::kReduceScatter, out, in);
  }
  Work broadcast(Tensor x, int root) override {
    check_root(CollectiveOp::kBroadcast, root, 1);
    return done(x);
  }
  Work reduce(Tensor x, int root, ReduceOp) override {
    check_root(CollectiveOp::kReduce, root, 1);
    return done(x);
  }
  Work all_to_all(Tensor out, Tensor in) override {
    check_exchange(out, in, 1);
    return copied(CollectiveOp::kAllToAll, out, in);
  }
  Work send(Tensor x, int to) override {
    check_peer(CollectiveOp::kSend, to, 0, 1);
    return done(x);
  }
  Work recv(Tensor x, int from) override {
    check_peer(CollectiveOp::kRecv, from, 0, 1);
    return done(x);
  }
  void barrier() override {}

  std::unique_ptr<Communicator> split(int color, int) override {
    return color < 0 ? nullptr : make_self_communicator();
  }
  Buffer symmetric_buffer(Device& device, std::size_t bytes) override { return Buffer(device, bytes); }
  Deadline set_deadline(Deadline deadline) override { return deadline; }  // nobody to wait for
  void abort(const std::string&) noexcept override {}
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace drivetrain
