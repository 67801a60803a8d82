#include "runtime/comm/hierarchical_comm.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/tensor_checks.h"

namespace drivetrain {
namespace {

// Of one rank's share in one step of the pipeline over the hosts.
constexpr std::int64_t kShareBytes = std::int64_t{1} << 20;

// The chain only adds; averages divide at its end.
ReduceOp chain_op(ReduceOp op) {
  return op == ReduceOp::kAverage ? ReduceOp::kSum : op;
}

Tensor view(std::vector<std::byte>& memory, std::int64_t begin, DType dtype, std::int64_t count) {
  const std::size_t end = static_cast<std::size_t>(begin + count) * size_of(dtype);
  if (memory.size() < end) memory.resize(end);
  return Tensor(memory.data(), dtype, {begin + count}).flat(begin, count);
}

// Step i may run ahead while the results of step i - 1 come back.
template <class Ahead, class Back>
void pipeline(std::int64_t steps, const Ahead& ahead, const Back& back) {
  for (std::int64_t i = 0; i <= steps && steps > 0; ++i) {
    if (i < steps) ahead(i);
    if (i > 0) back(i - 1);
  }
}

template <class Wanted>
std::unique_ptr<Wanted> as(std::unique_ptr<Communicator> communicator) {
  auto* wanted = dynamic_cast<Wanted*>(communicator.get());
  if (communicator && !wanted) throw Error(ErrorKind::kLogic, "a split changed its transport");
  static_cast<void>(communicator.release());
  return std::unique_ptr<Wanted>(wanted);
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(std::unique_ptr<HostCommunicator> host,
                                                   std::unique_ptr<AgreeingCommunicator> rail,
                                                   std::unique_ptr<AgreeingCommunicator> all)
    : host_(std::move(host)), rail_(std::move(rail)), all_(std::move(all)) {
  host_->become_part(Recording::kMessages);
  rail_->become_part(Recording::kNothing);
  group_ = all_->become_part(Recording::kMessages);
}

void HierarchicalCommunicator::agree(CallRecord& record) {
  record.sequence = ++sequence_;
  record.arrival_ns = steady_now_ns();
  host_->shared_world()->note_call(group_, record, FlightTransport::kHierarchical);
  // Equal on every host and equal along every rail is equal everywhere.
  CallRecord step = record;
  last_arrival_ns_ = host_->agree(step);
  const int last_here = step.last_rank;
  last_arrival_ns_ = std::max(last_arrival_ns_, rail_->agree(step));
  // Of another host only the member on this rail is seen; it knows for whom its host waited.
  const int last_host = step.last_rank;
  record.last_rank = last_host * host_->size() + (last_host == rail_->rank() ? last_here : host_->rank());
}

Work HierarchicalCommunicator::finished(const CallRecord& record, std::size_t bytes) const {
  const CollectiveTiming timing{record.arrival_ns, last_arrival_ns_, steady_now_ns(),
                                static_cast<std::int64_t>(bytes), record.last_rank};
  host_->shared_world()->note_end(record, timing);
  return Work(timing);
}

void HierarchicalCommunicator::chain(const Tensor& share, const Tensor& in, ReduceOp op) {
  Tensor so_far;
  if (rail_->rank() > 0) {
    so_far = view(carry_, 0, share.dtype, share.count());
    rail_->recv(so_far, rail_->rank() - 1).wait();
  }
  host_->reduce_scatter_onto(share, in, chain_op(op), so_far).wait();
  if (!ends_chain()) rail_->send(share, rail_->rank() + 1).wait();
}

void HierarchicalCommunicator::return_share(const Tensor& share, ReduceOp op, int to_host) {
  const int last = hosts() - 1;
  if (ends_chain()) {
    if (op == ReduceOp::kAverage) divide(share, size());
    for (int h = 0; h < last; ++h)
      if (to_host < 0 || to_host == h) rail_->send(share, h).wait();
  } else if (to_host < 0 || to_host == rail_->rank()) {
    rail_->recv(share, last).wait();
  }
}

void HierarchicalCommunicator::reduce_windows(const Tensor& x, ReduceOp op, int root) {
  const DType carried = carry_type(x.dtype, op);
  const std::int64_t members = host_->size(), share_count = kShareBytes / static_cast<std::int64_t>(size_of(carried));
  const std::int64_t step = members * share_count;
  const auto window = [&](std::int64_t i) { return x.flat(i * step, std::min(step, x.count() - i * step)); };
  // Sums for everybody that fit their shares exactly are made where they end up.
  const auto fits = [&](const Tensor& w) { return root < 0 && w.dtype == carried && w.count() % members == 0; };
  const auto share_of = [&](std::int64_t i) {
    const Tensor w = window(i);
    const std::int64_t count = (w.count() + members - 1) / members;
    if (fits(w)) return w.flat(host_->rank() * count, count);
    view(shares_, 0, carried, 2 * share_count);
    return view(shares_, (i % 2) * share_count, carried, count);
  };
  const auto ahead = [&](std::int64_t i) {
    const Tensor w = window(i), share = share_of(i);
    if (w.dtype == carried && w.count() == members * share.count()) return chain(share, w, op);
    const Tensor padded = view(scratch_, 0, carried, members * share.count());
    convert(padded.flat(0, w.count()), w);
    const Tensor rest = padded.flat(w.count(), padded.count() - w.count());
    std::fill_n(rest.data, rest.bytes(), std::byte{0});
    chain(share, padded, op);
  };
  const auto back = [&](std::int64_t i) {
    const Tensor w = window(i);
    Tensor share = share_of(i);
    return_share(share, op, root < 0 ? -1 : host_of(root));
    if (root >= 0 && host_of(root) != rail_->rank()) return;
    if (w.dtype != carried) {
      const Tensor rounded = view(carry_, 0, w.dtype, share.count());
      convert(rounded, share);
      share = rounded;
    }
    const bool direct = root < 0 && w.count() == members * share.count();
    const Tensor gathered = direct ? w : view(scratch_, 0, w.dtype, members * share.count());
    host_->all_gather(gathered, share).wait();
    if (!direct && (root < 0 || root == rank())) copy_bytes(w.data, gathered.data, w.bytes());
  };
  pipeline((x.count() + step - 1) / step, ahead, back);
}

Work HierarchicalCommunicator::all_reduce(Tensor x, ReduceOp op) {
  CallRecord record = make_record(CollectiveOp::kAllReduce, x.dtype, x.count());
  record.reduce = op;
  agree(record);
  reduce_windows(x, op, -1);
  return finished(record, x.bytes());
}

Work HierarchicalCommunicator::reduce(Tensor x, int root, ReduceOp op) {
  check_root(CollectiveOp::kReduce, root, size());
  CallRecord record = make_record(CollectiveOp::kReduce, x.dtype, x.count());
  record.reduce = op;
  record.root = root;
  agree(record);
  reduce_windows(x, op, root);
  return finished(record, x.bytes());
}

Work HierarchicalCommunicator::reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  check_shares(CollectiveOp::kReduceScatter, in, out, size());
  CallRecord record = make_record(CollectiveOp::kReduceScatter, out.dtype, out.count());
  record.reduce = op;
  agree(record);
  const DType carried = carry_type(in.dtype, op);
  const std::int64_t count = out.count(), block = count * host_->size();
  view(shares_, 0, carried, 2 * count);
  const auto share_of = [&](std::int64_t h) { return view(shares_, (h % 2) * count, carried, count); };
  const auto ahead = [&](std::int64_t h) {
    Tensor members_in = in.flat(h * block, block);
    if (in.dtype != carried) {
      const Tensor widened = view(scratch_, 0, carried, block);
      convert(widened, members_in);
      members_in = widened;
    }
    chain(share_of(h), members_in, op);
  };
  const auto back = [&](std::int64_t h) {
    return_share(share_of(h), op, static_cast<int>(h));
    if (h == rail_->rank()) convert(out, share_of(h));
  };
  if (count > 0) pipeline(hosts(), ahead, back);
  return finished(record, in.bytes());
}

Work HierarchicalCommunicator::all_gather(Tensor out, Tensor in) {
  check_shares(CollectiveOp::kAllGather, out, in, size());
  CallRecord record = make_record(CollectiveOp::kAllGather, in.dtype, in.count());
  agree(record);
  const std::int64_t count = in.count(), block = count * host_->size();
  const Tensor shares = view(scratch_, 0, in.dtype, count * hosts());
  rail_->all_gather(shares, in).wait();
  for (int h = 0; h < hosts(); ++h)
    host_->all_gather(out.flat(h * block, block), shares.flat(h * count, count)).wait();
  return finished(record, out.bytes());
}

Work HierarchicalCommunicator::broadcast(Tensor x, int root) {
  check_root(CollectiveOp::kBroadcast, root, size());
  CallRecord record = make_record(CollectiveOp::kBroadcast, x.dtype, x.count());
  record.root = root;
  agree(record);
  const int members = host_->size();
  const auto slice = [&](int l) {
    const std::int64_t begin = x.count() * l / members;
    return x.flat(begin, x.count() * (l + 1) / members - begin);
  };
  if (rail_->rank() == host_of(root)) host_->broadcast(x, index_of(root)).wait();
  rail_->broadcast(slice(host_->rank()), host_of(root)).wait();
  if (rail_->rank() != host_of(root))
    for (int l = 0; l < members; ++l) host_->broadcast(slice(l), l).wait();
  return finished(record, x.bytes());
}

Work HierarchicalCommunicator::all_to_all(Tensor out, Tensor in) {
  check_exchange(out, in, size());
  CallRecord record = make_record(CollectiveOp::kAllToAll, in.dtype, in.count() / size());
  agree(record);
  all_->all_to_all(out, in).wait();
  return finished(record, in.bytes());
}

Work HierarchicalCommunicator::send(Tensor x, int to) {
  check_peer(CollectiveOp::kSend, to, rank(), size());
  return host_of(to) == rail_->rank() ? host_->send(x, index_of(to)) : all_->send(x, to);
}

Work HierarchicalCommunicator::recv(Tensor x, int from) {
  check_peer(CollectiveOp::kRecv, from, rank(), size());
  return host_of(from) == rail_->rank() ? host_->recv(x, index_of(from)) : all_->recv(x, from);
}

void HierarchicalCommunicator::barrier() {
  CallRecord record = make_record(CollectiveOp::kBarrier, DType::kU8, 0);
  agree(record);
  // The rails have met, each by itself; together they have met once the hosts meet again.
  host_->barrier();
  static_cast<void>(finished(record, 0));
}

std::unique_ptr<Communicator> HierarchicalCommunicator::split(int color, int key) {
  CallRecord record = make_record(CollectiveOp::kSplit, DType::kU8, 0);
  agree(record);
  static_cast<void>(finished(record, 0));
  auto host = as<HostCommunicator>(host_->split(color, key));
  auto all = as<AgreeingCommunicator>(all_->split(color, key));
  return all ? make_group(std::move(host), std::move(all)) : nullptr;
}

Buffer HierarchicalCommunicator::symmetric_buffer(Device& device, std::size_t bytes) {
  CallRecord record = make_record(CollectiveOp::kAllocate, DType::kU8, 0);
  agree(record);
  static_cast<void>(finished(record, 0));
  return host_->symmetric_buffer(device, bytes);
}

Deadline HierarchicalCommunicator::set_deadline(Deadline deadline) {
  return host_->set_deadline(deadline);
}

std::unique_ptr<Communicator> make_group(std::unique_ptr<HostCommunicator> host,
                                         std::unique_ptr<AgreeingCommunicator> all) {
  if (host->size() == all->size()) return host;
  // Who is where: the first member on the host (as rank of `all`), members there, index among them.
  std::int32_t first = all->rank();
  host->broadcast(Tensor(&first, DType::kI32, {1}), 0).wait();
  std::array<std::int32_t, 3> mine = {first, host->size(), host->rank()};
  std::vector<std::int32_t> everybody(mine.size() * static_cast<std::size_t>(all->size()));
  all->all_gather(Tensor(everybody.data(), DType::kI32, {3 * all->size()}), Tensor(mine.data(), DType::kI32, {3}))
      .wait();
  const int members = everybody[1];
  for (int r = 0; r < all->size(); ++r) {
    const std::int32_t* place = everybody.data() + 3 * r;
    const bool in_blocks = place[0] == r / members * members && place[1] == members && place[2] == r % members;
    if (!in_blocks) return all;
  }
  auto rail = as<AgreeingCommunicator>(all->split(host->rank(), all->rank()));
  return std::make_unique<HierarchicalCommunicator>(std::move(host), std::move(rail), std::move(all));
}

}  // namespace drivetrain
