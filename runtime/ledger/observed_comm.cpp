#include "runtime/ledger/observed_comm.h"

#include <utility>

namespace drivetrain {
namespace {

int world_rank_of(const CollectiveTiming& timing, const std::vector<int>& world_ranks) {
  const auto r = static_cast<std::size_t>(timing.last_rank);
  return timing.last_rank >= 0 && r < world_ranks.size() ? world_ranks[r] : -1;
}

// A collective in flight: its wait is what it costs. Issuing it was the host's work, a host gap.
class ObservedState final : public Work::State {
 public:
  ObservedState(Work inner, CollectiveSpan span, std::shared_ptr<const std::vector<int>> world_ranks,
                StepLedger& ledger)
      : inner_(std::move(inner)), span_(span), world_ranks_(std::move(world_ranks)), ledger_(ledger) {}

  void wait() override {
    if (charged_) return inner_.wait();
    span_.begin_ns = ledger_.now();
    inner_.wait();
    span_.end_ns = ledger_.now();
    span_.timing = inner_.timing();
    span_.last_rank = world_rank_of(span_.timing, *world_ranks_);
    ledger_.collective(span_);
    charged_ = true;
  }
  CollectiveTiming timing() const override { return inner_.timing(); }

 private:
  Work inner_;
  CollectiveSpan span_;
  std::shared_ptr<const std::vector<int>> world_ranks_;
  StepLedger& ledger_;
  bool charged_ = false;
};

}  // namespace

ObservedCommunicator::ObservedCommunicator(std::unique_ptr<Communicator> inner, CommAxis axis,
                                           std::vector<int> world_ranks, StepLedger& ledger)
    : inner_(std::move(inner)),
      axis_(axis),
      world_ranks_(std::make_shared<const std::vector<int>>(std::move(world_ranks))),
      ledger_(ledger) {}

CollectiveSpan ObservedCommunicator::span(CollectiveOp op) {
  const bool everybody = op != CollectiveOp::kSend && op != CollectiveOp::kRecv;
  return {.axis = axis_, .op = op, .begin_ns = ledger_.now(), .sequence = everybody ? ++sequence_ : 0};
}

template <class Call>
Work ObservedCommunicator::observe(CollectiveOp op, const Call& call) {
  CollectiveSpan seen = span(op);
  Work work = call();
  if (work.pending()) return Work(std::make_shared<ObservedState>(std::move(work), seen, world_ranks_, ledger_));
  seen.end_ns = ledger_.now();
  seen.timing = work.timing();
  seen.last_rank = world_rank_of(seen.timing, *world_ranks_);
  ledger_.collective(seen);
  return work;
}

Work ObservedCommunicator::all_reduce(Tensor x, ReduceOp op) {
  return observe(CollectiveOp::kAllReduce, [&] { return inner_->all_reduce(x, op); });
}
Work ObservedCommunicator::all_gather(Tensor out, Tensor in) {
  return observe(CollectiveOp::kAllGather, [&] { return inner_->all_gather(out, in); });
}
Work ObservedCommunicator::reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  return observe(CollectiveOp::kReduceScatter, [&] { return inner_->reduce_scatter(out, in, op); });
}
Work ObservedCommunicator::broadcast(Tensor x, int root) {
  return observe(CollectiveOp::kBroadcast, [&] { return inner_->broadcast(x, root); });
}
Work ObservedCommunicator::reduce(Tensor x, int root, ReduceOp op) {
  return observe(CollectiveOp::kReduce, [&] { return inner_->reduce(x, root, op); });
}
Work ObservedCommunicator::all_to_all(Tensor out, Tensor in) {
  return observe(CollectiveOp::kAllToAll, [&] { return inner_->all_to_all(out, in); });
}
Work ObservedCommunicator::send(Tensor x, int to) {
  return observe(CollectiveOp::kSend, [&] { return inner_->send(x, to); });
}
Work ObservedCommunicator::recv(Tensor x, int from) {
  return observe(CollectiveOp::kRecv, [&] { return inner_->recv(x, from); });
}

void ObservedCommunicator::barrier() {
  CollectiveSpan seen = span(CollectiveOp::kBarrier);
  inner_->barrier();
  seen.end_ns = ledger_.now();
  seen.timing = {seen.begin_ns, seen.end_ns, seen.end_ns, 0};
  ledger_.collective(seen);
}

}  // namespace drivetrain
