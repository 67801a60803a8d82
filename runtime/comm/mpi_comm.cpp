#include "runtime/comm/mpi_comm.h"

#include <algorithm>
#include <list>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/blocking_deadline.h"
#include "runtime/comm/host_wait.h"
#include "runtime/comm/mpi_check.h"
#include "runtime/comm/mpi_group.h"
#include "runtime/comm/tensor_checks.h"

namespace drivetrain {
namespace {

// Elements of one rank's share that are reduced at a time; bounds the scratch memory to this times the group.
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;

// A message of send(): on its way until waited for, or until the group waits for something else.
class Outgoing final : public Work::State {
 public:
  Outgoing(MpiGroup& group, const Tensor& x, int to, std::uint64_t sequence)
      : group_(group), record_(make_record(CollectiveOp::kSend, x.dtype, x.count())), bytes_(x.bytes()) {
    record_.sequence = sequence;
    record_.root = to;
    record_.arrival_ns = steady_now_ns();
    group_.note_message(record_);
    group_.start(transfers_, reinterpret_cast<const std::byte*>(&record_), sizeof record_, to,
                 MpiGroup::Tag::kMessage);
    group_.start(transfers_, x.data, bytes_, to, MpiGroup::Tag::kMessage);
  }
  void wait() override {
    group_.wait(transfers_, record_);
    end();
  }
  bool done() {
    if (!group_.test(transfers_)) return false;
    end();
    return true;
  }
  CollectiveTiming timing() const override {
    return {record_.arrival_ns, 0, end_ns_, static_cast<std::int64_t>(bytes_)};
  }

 private:
  void end() {
    if (end_ns_ != 0) return;
    end_ns_ = steady_now_ns();
    group_.note_end(record_, timing());
  }

  MpiGroup& group_;
  CallRecord record_;
  std::size_t bytes_;
  std::int64_t end_ns_ = 0;
  std::vector<MpiGroup::Transfer> transfers_;
};

class MpiCommunicator final : public AgreeingCommunicator {
 public:
  explicit MpiCommunicator(std::unique_ptr<MpiGroup> group)
      : group_(std::move(group)), sent_(group_count()), received_(group_count()) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  std::string transport() const override { return "mpi"; }

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
  std::int64_t agree(CallRecord& call) override;
  std::uint32_t become_part(Recording recording) override { return group_->become_part(recording); }
  Deadline set_deadline(Deadline deadline) override { return group_->world().host().set_deadline(deadline); }
  void abort(const std::string& reason) noexcept override { group_->world().fail(ErrorKind::kComm, reason); }

 private:
  std::size_t group_count() const { return static_cast<std::size_t>(group_->size()); }
  // Enters; data that rides along needs no transfers afterwards.
  enum class Data { kRode, kToMove };
  Data enter(CallRecord& record, const Tensor& rider);
  Work finished(const CallRecord& record, std::size_t bytes) const {
    const CollectiveTiming timing{record.arrival_ns, last_arrival_ns_, steady_now_ns(),
                                  static_cast<std::int64_t>(bytes), record.last_rank};
    group_->note_end(record, timing);
    return Work(timing);
  }
  // Every member reduces the part `part(r)` (begin, count) of all members' `in` that belongs to it, into `out`.
  struct Part {
    std::int64_t begin, count;
  };
  template <class PartOf>
  void exchange_and_reduce(std::byte* out, const Tensor& in, ReduceOp op, const PartOf& part);
  void reduce_riders(std::byte* out, DType dtype, std::size_t offset, ReduceOp op, std::int64_t count);
  Part slice_of(int r, std::int64_t count) const {
    return {count * r / size(), count * (r + 1) / size() - count * r / size()};
  }

  std::unique_ptr<MpiGroup> group_;
  std::int64_t last_arrival_ns_ = 0;            // of the current collective
  std::vector<std::uint64_t> sent_, received_;  // messages per peer
  std::vector<std::shared_ptr<Outgoing>> outgoing_;
};

MpiCommunicator::Data MpiCommunicator::enter(CallRecord& record, const Tensor& rider) {
  std::erase_if(outgoing_, [](const auto& message) { return message->done(); });
  const bool rides = rider.bytes() <= MpiGroup::kRiderBytes;
  last_arrival_ns_ = group_->enter(
      record, rides ? std::span<const std::byte>(rider.data, rider.bytes()) : std::span<const std::byte>{});
  return rides ? Data::kRode : Data::kToMove;
}

void MpiCommunicator::reduce_riders(std::byte* out, DType dtype, std::size_t offset, ReduceOp op,
                                    std::int64_t count) {
  std::vector<const std::byte*> sources;
  for (int r = 0; r < size(); ++r) sources.push_back(group_->rider_of(r) + offset);
  reduce_into(std::span<std::byte* const>(&out, 1), sources, dtype, op, count);
}

template <class PartOf>
void MpiCommunicator::exchange_and_reduce(std::byte* out, const Tensor& in, ReduceOp op, const PartOf& part) {
  const Part mine = part(rank());
  std::int64_t longest = 0;
  for (int r = 0; r < size(); ++r) longest = std::max(longest, part(r).count);
  const auto step = static_cast<std::int64_t>(kWindowBytes / size_of(in.dtype));
  const std::size_t stride = bytes_of(std::min(step, longest), in.dtype);
  std::byte* scratch = group_->scratch(stride * group_count());
  std::vector<const std::byte*> sources(group_count());
  for (std::int64_t begin = 0; begin < longest; begin += step) {
    const auto window = [&](const Part& p) { return std::clamp<std::int64_t>(p.count - begin, 0, step); };
    const std::int64_t count = window(mine);
    for (int d = 1; d < size(); ++d) {
      const int from = (rank() + size() - d) % size(), to = (rank() + d) % size();
      group_->start_recv(scratch + static_cast<std::size_t>(from) * stride, bytes_of(count, in.dtype), from);
      const Part theirs = part(to);
      group_->start_send(in.data + bytes_of(theirs.begin + begin, in.dtype), bytes_of(window(theirs), in.dtype), to);
    }
    group_->finish();
    for (int r = 0; r < size(); ++r)
      sources[static_cast<std::size_t>(r)] = scratch + static_cast<std::size_t>(r) * stride;
    sources[static_cast<std::size_t>(rank())] = in.data + bytes_of(mine.begin + begin, in.dtype);
    std::byte* target = out + bytes_of(begin, in.dtype);
    reduce_into(std::span<std::byte* const>(&target, 1), sources, in.dtype, op, count);
  }
}

Work MpiCommunicator::all_reduce(Tensor x, ReduceOp op) {
  CallRecord record = make_record(CollectiveOp::kAllReduce, x.dtype, x.count());
  record.reduce = op;
  if (enter(record, x) == Data::kRode) {
    reduce_riders(x.data, x.dtype, 0, op, x.count());
    return finished(record, x.bytes());
  }
  const auto part = [&](int r) { return slice_of(r, x.count()); };
  const Part mine = part(rank());
  const auto at = [&](const Part& p) { return x.data + bytes_of(p.begin, x.dtype); };
  exchange_and_reduce(at(mine), x, op, part);
  for (int d = 1; d < size(); ++d) {
    const Part theirs = part((rank() + size() - d) % size());
    group_->start_recv(at(theirs), bytes_of(theirs.count, x.dtype), (rank() + size() - d) % size());
    group_->start_send(at(mine), bytes_of(mine.count, x.dtype), (rank() + d) % size());
  }
  group_->finish();
  return finished(record, x.bytes());
}

Work MpiCommunicator::reduce(Tensor x, int root, ReduceOp op) {
  check_root(CollectiveOp::kReduce, root, size());
  CallRecord record = make_record(CollectiveOp::kReduce, x.dtype, x.count());
  record.reduce = op;
  record.root = root;
  if (enter(record, x) == Data::kRode) {
    if (rank() == root) reduce_riders(x.data, x.dtype, 0, op, x.count());
    return finished(record, x.bytes());
  }
  const auto part = [&](int r) { return slice_of(r, x.count()); };
  const Part mine = part(rank());
  const auto at = [&](const Part& p) { return x.data + bytes_of(p.begin, x.dtype); };
  exchange_and_reduce(at(mine), x, op, part);
  if (rank() == root) {
    for (int r = 0; r < size(); ++r)
      if (r != root) group_->start_recv(at(part(r)), bytes_of(part(r).count, x.dtype), r);
  } else {
    group_->start_send(at(mine), bytes_of(mine.count, x.dtype), root);
  }
  group_->finish();
  return finished(record, x.bytes());
}

Work MpiCommunicator::reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  check_shares(CollectiveOp::kReduceScatter, in, out, size());
  CallRecord record = make_record(CollectiveOp::kReduceScatter, out.dtype, out.count());
  record.reduce = op;
  if (enter(record, in) == Data::kRode)
    reduce_riders(out.data, out.dtype, static_cast<std::size_t>(rank()) * out.bytes(), op, out.count());
  else
    exchange_and_reduce(out.data, in, op, [&](int r) { return Part{r * out.count(), out.count()}; });
  return finished(record, in.bytes());
}

Work MpiCommunicator::all_gather(Tensor out, Tensor in) {
  check_shares(CollectiveOp::kAllGather, out, in, size());
  CallRecord record = make_record(CollectiveOp::kAllGather, in.dtype, in.count());
  const auto at = [&](int r) { return out.data + static_cast<std::size_t>(r) * in.bytes(); };
  if (enter(record, in) == Data::kRode) {
    for (int r = 0; r < size(); ++r) copy_bytes(at(r), group_->rider_of(r), in.bytes());
    return finished(record, out.bytes());
  }
  copy_bytes(at(rank()), in.data, in.bytes());
  for (int d = 1; d < size(); ++d) {
    const int from = (rank() + size() - d) % size(), to = (rank() + d) % size();
    group_->start_recv(at(from), in.bytes(), from);
    group_->start_send(at(rank()), in.bytes(), to);
  }
  group_->finish();
  return finished(record, out.bytes());
}

Work MpiCommunicator::broadcast(Tensor x, int root) {
  check_root(CollectiveOp::kBroadcast, root, size());
  CallRecord record = make_record(CollectiveOp::kBroadcast, x.dtype, x.count());
  record.root = root;
  if (enter(record, rank() == root || x.bytes() > MpiGroup::kRiderBytes ? x : Tensor{}) == Data::kRode) {
    if (rank() != root) copy_bytes(x.data, group_->rider_of(root), x.bytes());
    return finished(record, x.bytes());
  }
  // A binomial tree over distances from the root: the parent clears the lowest bit, the children set a lower one.
  const int distance = (rank() - root + size()) % size();
  int bit = 1;
  while (bit < size() && (distance & bit) == 0) bit <<= 1;
  if (distance != 0) {
    group_->start_recv(x.data, x.bytes(), (distance - bit + root) % size());
    group_->finish();
  }
  for (int child = bit >> 1; child > 0; child >>= 1)
    if (distance + child < size()) group_->start_send(x.data, x.bytes(), (distance + child + root) % size());
  group_->finish();
  return finished(record, x.bytes());
}

Work MpiCommunicator::all_to_all(Tensor out, Tensor in) {
  check_exchange(out, in, size());
  CallRecord record = make_record(CollectiveOp::kAllToAll, in.dtype, in.count() / size());
  const std::size_t share = in.bytes() / group_count();
  const auto offset = [&](int r) { return static_cast<std::size_t>(r) * share; };
  if (enter(record, in) == Data::kRode) {
    for (int r = 0; r < size(); ++r) copy_bytes(out.data + offset(r), group_->rider_of(r) + offset(rank()), share);
    return finished(record, in.bytes());
  }
  copy_bytes(out.data + offset(rank()), in.data + offset(rank()), share);
  for (int d = 1; d < size(); ++d) {
    const int from = (rank() + size() - d) % size(), to = (rank() + d) % size();
    group_->start_recv(out.data + offset(from), share, from);
    group_->start_send(in.data + offset(to), share, to);
  }
  group_->finish();
  return finished(record, in.bytes());
}

Work MpiCommunicator::send(Tensor x, int to) {
  check_peer(CollectiveOp::kSend, to, rank(), size());
  group_->world().check();
  auto message = std::make_shared<Outgoing>(*group_, x, to, ++sent_[static_cast<std::size_t>(to)]);
  outgoing_.push_back(message);
  return Work(std::move(message));
}

Work MpiCommunicator::recv(Tensor x, int from) {
  check_peer(CollectiveOp::kRecv, from, rank(), size());
  group_->world().check();
  CallRecord record = make_record(CollectiveOp::kRecv, x.dtype, x.count()), theirs;
  record.sequence = ++received_[static_cast<std::size_t>(from)];
  record.root = from;
  record.arrival_ns = steady_now_ns();
  group_->note_message(record);
  std::vector<MpiGroup::Transfer> transfers;
  group_->start_into(transfers, reinterpret_cast<std::byte*>(&theirs), sizeof theirs, from, MpiGroup::Tag::kMessage);
  group_->wait(transfers, record);
  last_arrival_ns_ = steady_now_ns();
  if (theirs.dtype != x.dtype || theirs.count != x.count())
    group_->fail(ErrorKind::kComm,
                 "mismatched message in " + group_->describe() + ", call #" + std::to_string(record.sequence) +
                     ": rank " + std::to_string(group_->world_rank(from)) + " called " + theirs.describe() +
                     ", rank " + std::to_string(group_->world_rank(rank())) + " called " + record.describe());
  group_->start_into(transfers, x.data, x.bytes(), from, MpiGroup::Tag::kMessage);
  group_->wait(transfers, record);
  return finished(record, x.bytes());
}

void MpiCommunicator::barrier() {
  CallRecord record = make_record(CollectiveOp::kBarrier, DType::kU8, 0);
  enter(record, {});
  static_cast<void>(finished(record, 0));
}

std::int64_t MpiCommunicator::agree(CallRecord& call) {
  return group_->enter(call, {});
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key) {
  CallRecord record = make_record(CollectiveOp::kSplit, DType::kU8, 0);
  enter(record, {});
  static_cast<void>(finished(record, 0));
  const Deadline deadline = group_->world().host().deadline();
  BlockingDeadline guard("split() of " + group_->describe(), deadline.limit, deadline.key, {});
  guard.phase("MPI_Comm_split");
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(group_->comm(), color < 0 ? MPI_UNDEFINED : color, key, &part), "MPI_Comm_split");
  if (part == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiCommunicator>(std::make_unique<MpiGroup>(group_->shared_world(), part));
}

// There is no memory that peers could reach; the call is compared all the same.
Buffer MpiCommunicator::symmetric_buffer(Device& device, std::size_t bytes) {
  CallRecord record = make_record(CollectiveOp::kAllocate, DType::kU8, 0);
  enter(record, {});
  static_cast<void>(finished(record, 0));
  return Buffer(device, bytes);
}

}  // namespace

std::unique_ptr<AgreeingCommunicator> make_mpi_communicator(std::shared_ptr<MpiWorld> world) {
  MPI_Comm all = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
  return std::make_unique<MpiCommunicator>(std::make_unique<MpiGroup>(std::move(world), all));
}

}  // namespace drivetrain
