#include "runtime/comm/progress_comm.h"

#include <algorithm>

#include "runtime/comm/tensor_checks.h"

namespace drivetrain {

ProgressCommunicator::ProgressCommunicator(std::unique_ptr<Communicator> inner, std::size_t inline_bytes)
    : inner_(std::move(inner)),
      inline_bytes_(inline_bytes),
      queue_(std::make_shared<ProgressQueue>(
          "comm " + std::to_string(inner_->rank()) + '/' + std::to_string(inner_->size()),
          [c = inner_.get()](const std::string& reason) {
            c->abort("rank " + std::to_string(c->rank()) + " failed: " + reason);
          })) {}

template <class Call>
Work ProgressCommunicator::run(std::size_t bytes, const Call& call) {
  if (bytes <= inline_bytes_ && queue_->quiet()) return call();
  return queue_->push(call, ProgressQueue::Ends::kOnReturn);
}

// Wrong arguments are refused where they are passed, before anything is queued.

Work ProgressCommunicator::all_reduce(Tensor x, ReduceOp op) {
  return run(x.bytes(), [this, x, op] { return inner_->all_reduce(x, op); });
}

Work ProgressCommunicator::all_gather(Tensor out, Tensor in) {
  check_shares(CollectiveOp::kAllGather, out, in, size());
  return run(out.bytes(), [this, out, in] { return inner_->all_gather(out, in); });
}

Work ProgressCommunicator::reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  check_shares(CollectiveOp::kReduceScatter, in, out, size());
  return run(in.bytes(), [this, out, in, op] { return inner_->reduce_scatter(out, in, op); });
}

Work ProgressCommunicator::broadcast(Tensor x, int root) {
  check_root(CollectiveOp::kBroadcast, root, size());
  return run(x.bytes(), [this, x, root] { return inner_->broadcast(x, root); });
}

Work ProgressCommunicator::reduce(Tensor x, int root, ReduceOp op) {
  check_root(CollectiveOp::kReduce, root, size());
  return run(x.bytes(), [this, x, root, op] { return inner_->reduce(x, root, op); });
}

Work ProgressCommunicator::all_to_all(Tensor out, Tensor in) {
  check_exchange(out, in, size());
  return run(in.bytes(), [this, out, in] { return inner_->all_to_all(out, in); });
}

Work ProgressCommunicator::send(Tensor x, int to) {
  check_peer(CollectiveOp::kSend, to, rank(), size());
  if (queue_->quiet()) return queue_->made(inner_->send(x, to));
  return queue_->push([this, x, to] { return inner_->send(x, to); }, ProgressQueue::Ends::kWhenWaitedFor);
}

Work ProgressCommunicator::recv(Tensor x, int from) {
  check_peer(CollectiveOp::kRecv, from, rank(), size());
  return run(x.bytes(), [this, x, from] { return inner_->recv(x, from); });
}

void ProgressCommunicator::barrier() {
  queue_->drain();
  inner_->barrier();
}

std::unique_ptr<Communicator> ProgressCommunicator::split(int color, int key) {
  queue_->drain();
  auto part = inner_->split(color, key);
  return part ? std::make_unique<ProgressCommunicator>(std::move(part), inline_bytes_) : nullptr;
}

Buffer ProgressCommunicator::symmetric_buffer(Device& device, std::size_t bytes) {
  queue_->drain();
  return inner_->symmetric_buffer(device, bytes);
}

bool wants_progress(const CommOptions& options, int cores, int ranks_on_host) {
  if (options.progress != ProgressThread::kAuto) return options.progress == ProgressThread::kOn;
  return cores >= ranks_on_host * (options.compute_threads + 1);
}

}  // namespace drivetrain
