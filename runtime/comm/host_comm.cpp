#include "runtime/comm/host_comm.h"

#include <algorithm>
#include <cstring>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/tensor_checks.h"

namespace drivetrain {
namespace {

std::size_t bytes_of(std::int64_t count, DType dtype) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

}  // namespace

HostCommunicator::HostCommunicator(std::unique_ptr<HostGroup> group)
    : group_(std::move(group)), mail_(*group_), views_(static_cast<std::size_t>(group_->size())) {
  group_->set_idle([this] { mail_.progress(); });
  targets_.reserve(views_.size());
  sources_.reserve(views_.size() + 1);
}

std::string HostCommunicator::transport() const {
  return group_->world().blocks().transport();
}

template <class Consume>
Work HostCommunicator::run(CallRecord record, const Tensor& exposed, int shares, std::size_t bytes,
                           const Consume& consume) {
  HostGroup& group = *group_;
  const std::int64_t count = record.count;
  const std::size_t stride = bytes_of(count, record.dtype);
  std::int64_t last_arrival_ns = 0;
  if (stride * static_cast<std::size_t>(shares) <= kInlineBytes) {
    const int window = group.next_window();
    if (exposed.present()) pack(group.inline_data(rank(), window), exposed, shares, 0, count);
    last_arrival_ns = group.enter(record, {Place::kNothing, 0}, {});
    for (int r = 0; r < size(); ++r) views_[static_cast<std::size_t>(r)] = group.inline_data(r, window);
    consume(Window{Path::kInline, 0, count, stride, views_});
  } else {
    const Place place = exposed.present() ? group.world().locate(exposed.data, exposed.bytes(), group.members())
                                          : Place{Place::kNothing, 0};
    last_arrival_ns = group.enter(record, place, {});
    if (choose_path() == Path::kDirect)
      run_direct(count, stride, consume);
    else
      run_staged(record, exposed, shares, consume);
  }
  const CollectiveTiming timing{record.arrival_ns, last_arrival_ns, steady_now_ns(),
                                static_cast<std::int64_t>(bytes)};
  group.world().note_end(record, timing);
  return Work(timing);
}

template <class Consume>
void HostCommunicator::run_direct(std::int64_t count, std::size_t stride, const Consume& consume) {
  for (int r = 0; r < size(); ++r) {
    const Place& place = group_->place_of(r);
    views_[static_cast<std::size_t>(r)] =
        place.allocation == Place::kNothing ? nullptr : group_->world().resolve(group_->member(r), place);
  }
  consume(Window{Path::kDirect, 0, count, stride, views_});
  group_->meet();  // nobody returns while its memory is in use
}

template <class Consume>
void HostCommunicator::run_staged(const CallRecord& record, const Tensor& exposed, int shares,
                                  const Consume& consume) {
  if (!staging_.data) {
    // Everybody has seen the same places, so everybody comes here in the same call.
    const std::size_t area = 2 * group_->world().options().staging_bytes;
    staging_ = share(0, area * static_cast<std::size_t>(size()), Commit::kOwnPart).block;
  }
  const std::size_t per_element = size_of(record.dtype) * static_cast<std::size_t>(shares);
  const auto room = static_cast<std::int64_t>(group_->world().options().staging_bytes / per_element);
  constexpr std::int64_t kRound = 64;
  const std::int64_t step = std::max<std::int64_t>(1, room > kRound ? room / kRound * kRound : room);
  for (std::int64_t begin = 0; begin < record.count; begin += step) {
    const std::int64_t count = std::min(step, record.count - begin);
    const int window = group_->next_window();
    if (exposed.present()) pack(staging(rank(), window), exposed, shares, begin, count);
    group_->meet();
    for (int r = 0; r < size(); ++r) views_[static_cast<std::size_t>(r)] = staging(r, window);
    consume(Window{Path::kStaged, begin, count, bytes_of(count, record.dtype), views_});
  }
}

HostCommunicator::Path HostCommunicator::choose_path() const {
  for (int r = 0; r < size(); ++r)
    if (group_->place_of(r).allocation == Place::kOrdinary) return Path::kStaged;
  return Path::kDirect;
}

std::byte* HostCommunicator::staging(int r, int window) const {
  return staging_.data + (static_cast<std::size_t>(r) * 2 + static_cast<std::size_t>(window)) *
                             group_->world().options().staging_bytes;
}

void HostCommunicator::pack(std::byte* area, const Tensor& exposed, int shares, std::int64_t begin,
                            std::int64_t count) const {
  const std::size_t piece = bytes_of(count, exposed.dtype), offset = bytes_of(begin, exposed.dtype);
  const std::size_t share = exposed.bytes() / static_cast<std::size_t>(shares);
  for (int q = 0; q < shares; ++q) {
    const auto i = static_cast<std::size_t>(q);
    copy_bytes(area + i * piece, exposed.data + i * share + offset, piece);
  }
}

HostCommunicator::Range HostCommunicator::slice_of(int r, std::int64_t count, DType dtype) const {
  const auto line = static_cast<std::int64_t>(kCacheLine / size_of(dtype));
  const std::int64_t lines = (count + line - 1) / line;
  const std::int64_t begin = std::min(count, lines * r / size() * line);
  const std::int64_t end = std::min(count, lines * (r + 1) / size() * line);
  return {begin, end - begin};
}

void HostCommunicator::reduce_slice(const Window& window, DType dtype, ReduceOp op,
                                    std::span<std::byte* const> targets) {
  const Range mine = slice_of(rank(), window.count, dtype);
  if (mine.count == 0) return;
  const std::size_t offset = bytes_of(mine.begin, dtype);
  sources_.clear();
  targets_.clear();
  for (const std::byte* view : window.views) sources_.push_back(view + offset);
  for (std::byte* target : targets) targets_.push_back(target + offset);
  reduce_into(targets_, sources_, dtype, op, mine.count);
}

Work HostCommunicator::all_reduce(Tensor x, ReduceOp op) {
  CallRecord record = make_record(CollectiveOp::kAllReduce, x.dtype, x.count());
  record.reduce = op;
  return run(record, x, 1, x.bytes(), [&](const Window& window) {
    if (window.path == Path::kDirect) return reduce_slice(window, x.dtype, op, window.views);
    std::byte* out = x.data + bytes_of(window.begin, x.dtype);
    if (window.path == Path::kInline) {
      sources_.assign(window.views.begin(), window.views.end());
      reduce_into(std::span<std::byte* const>(&out, 1), sources_, x.dtype, op, window.count);
      return;
    }
    std::byte* area = window.views[static_cast<std::size_t>(rank())];
    reduce_slice(window, x.dtype, op, std::span<std::byte* const>(&area, 1));
    group_->meet();
    for (int r = 0; r < size(); ++r) {
      const Range part = slice_of(r, window.count, x.dtype);
      const std::size_t offset = bytes_of(part.begin, x.dtype);
      copy_bytes(out + offset, window.views[static_cast<std::size_t>(r)] + offset, bytes_of(part.count, x.dtype));
    }
  });
}

Work HostCommunicator::reduce(Tensor x, int root, ReduceOp op) {
  check_root(CollectiveOp::kReduce, root, size());
  CallRecord record = make_record(CollectiveOp::kReduce, x.dtype, x.count());
  record.reduce = op;
  record.root = root;
  return run(record, x, 1, x.bytes(), [&](const Window& window) {
    if (window.path == Path::kDirect)
      return reduce_slice(window, x.dtype, op, std::span(&window.views[static_cast<std::size_t>(root)], 1));
    if (rank() != root) return;
    sources_.assign(window.views.begin(), window.views.end());
    std::byte* target = x.data + bytes_of(window.begin, x.dtype);
    reduce_into(std::span<std::byte* const>(&target, 1), sources_, x.dtype, op, window.count);
  });
}

Work HostCommunicator::all_gather(Tensor out, Tensor in) {
  check_shares(CollectiveOp::kAllGather, out, in, size());
  return run(make_record(CollectiveOp::kAllGather, in.dtype, in.count()), in, 1, out.bytes(),
             [&](const Window& window) {
               for (int d = 0; d < size(); ++d) {
                 const int r = (rank() + d) % size();  // not all from the same member at once
                 const std::int64_t at = r * in.count() + window.begin;
                 copy_bytes(out.data + bytes_of(at, in.dtype), window.views[static_cast<std::size_t>(r)],
                            bytes_of(window.count, in.dtype));
               }
             });
}

Work HostCommunicator::reduce_scatter(Tensor out, Tensor in, ReduceOp op) {
  return reduce_scatter_onto(out, in, op, Tensor{});
}

Work HostCommunicator::reduce_scatter_onto(Tensor out, Tensor in, ReduceOp op, Tensor carry) {
  check_shares(CollectiveOp::kReduceScatter, in, out, size());
  CallRecord record = make_record(CollectiveOp::kReduceScatter, out.dtype, out.count());
  record.reduce = op;
  return run(record, in, size(), in.bytes(), [&](const Window& window) {
    sources_.clear();
    if (carry.present()) sources_.push_back(carry.data + bytes_of(window.begin, out.dtype));
    for (const std::byte* view : window.views)
      sources_.push_back(view + static_cast<std::size_t>(rank()) * window.stride);
    std::byte* target = out.data + bytes_of(window.begin, out.dtype);
    reduce_into(std::span<std::byte* const>(&target, 1), sources_, out.dtype, op, window.count);
  });
}

Work HostCommunicator::broadcast(Tensor x, int root) {
  check_root(CollectiveOp::kBroadcast, root, size());
  CallRecord record = make_record(CollectiveOp::kBroadcast, x.dtype, x.count());
  record.root = root;
  return run(record, rank() == root ? x : Tensor{}, 1, x.bytes(), [&](const Window& window) {
    if (rank() == root) return;
    copy_bytes(x.data + bytes_of(window.begin, x.dtype), window.views[static_cast<std::size_t>(root)],
               bytes_of(window.count, x.dtype));
  });
}

Work HostCommunicator::all_to_all(Tensor out, Tensor in) {
  check_exchange(out, in, size());
  const std::int64_t share = in.count() / size();
  return run(
      make_record(CollectiveOp::kAllToAll, in.dtype, share), in, size(), in.bytes(), [&](const Window& window) {
        for (int d = 0; d < size(); ++d) {
          const int r = (rank() + d) % size();
          copy_bytes(out.data + bytes_of(r * share + window.begin, in.dtype),
                     window.views[static_cast<std::size_t>(r)] + static_cast<std::size_t>(rank()) * window.stride,
                     bytes_of(window.count, in.dtype));
        }
      });
}

Work HostCommunicator::send(Tensor x, int to) {
  return mail_.send(x, to);
}

Work HostCommunicator::recv(Tensor x, int from) {
  return mail_.recv(x, from);
}

void HostCommunicator::barrier() {
  CallRecord record = make_record(CollectiveOp::kBarrier, DType::kU8, 0);
  const std::int64_t last_arrival_ns = agree(record);
  group_->world().note_end(record, {record.arrival_ns, last_arrival_ns, steady_now_ns(), 0});
}

std::int64_t HostCommunicator::agree(CallRecord& call) {
  return group_->enter(call, {Place::kNothing, 0}, {});
}

HostCommunicator::Shared HostCommunicator::share(int leader, std::size_t bytes, Commit commit) {
  HostWorld& world = group_->world();
  Shared shared;
  BlockTicket ticket;
  CallRecord record = make_record(CollectiveOp::kShare, DType::kU8, 0);
  try {
    if (leader == rank()) {
      shared.id = world.take_id();
      shared.block = world.blocks().create(bytes, ticket);
      if (commit == Commit::kLeader) world.blocks().commit(shared.block, 0, bytes);
      record.entry_value = shared.id;
    }
    const std::int64_t last_arrival_ns = group_->enter(record, {Place::kNothing, 0}, ticket);
    if (leader >= 0 && leader != rank()) {
      shared.block = world.blocks().open(group_->ticket_of(leader), bytes);
      shared.id = static_cast<std::uint32_t>(group_->call_of(leader).entry_value);
    }
    if (commit == Commit::kOwnPart) {
      const std::size_t part = bytes / static_cast<std::size_t>(size());
      world.blocks().commit(shared.block, part * static_cast<std::size_t>(rank()), part);
    }
    group_->meet();
    world.note_end(record, {record.arrival_ns, last_arrival_ns, steady_now_ns(), 0});
  } catch (const Error& error) {
    if (shared.block.data && leader == rank()) world.blocks().seal(ticket);
    world.fail(error.kind(), error.what());
    throw;
  }
  if (leader == rank()) world.blocks().seal(ticket);
  return shared;
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  CallRecord record = make_record(CollectiveOp::kSplit, DType::kU8, 0);
  record.entry_value = color;
  record.entry_key = key;
  const std::int64_t last_arrival_ns = group_->enter(record, {Place::kNothing, 0}, {});
  group_->world().note_end(record, {record.arrival_ns, last_arrival_ns, steady_now_ns(), 0});
  std::vector<int> ranks;
  for (int r = 0; r < size(); ++r)
    if (color >= 0 && group_->call_of(r).entry_value == color) ranks.push_back(r);
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](int a, int b) { return group_->call_of(a).entry_key < group_->call_of(b).entry_key; });
  Shared shared =
      share(ranks.empty() ? -1 : ranks.front(), group_block_bytes(static_cast<int>(ranks.size())), Commit::kLeader);
  if (ranks.empty()) return nullptr;
  const auto mine = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin());
  std::vector<int> members;
  for (const int r : ranks) members.push_back(group_->member(r));
  return std::make_unique<HostCommunicator>(std::make_unique<HostGroup>(
      group_->shared_world(), std::move(shared.block), shared.id, std::move(members), mine));
}

Buffer HostCommunicator::symmetric_buffer(Device& device, std::size_t bytes) {
  const bool reachable_anyway = group_->world().options().reach == HostOptions::Reach::kEverywhere;
  CallRecord record = make_record(CollectiveOp::kAllocate, DType::kU8, 0);
  record.entry_value = static_cast<std::int64_t>(bytes);
  const std::int64_t last_arrival_ns = group_->enter(record, {Place::kNothing, 0}, {});
  group_->world().note_end(record, {record.arrival_ns, last_arrival_ns, steady_now_ns(), 0});
  if (reachable_anyway || device.kind() != DeviceKind::kCpu) return Buffer(device, bytes);
  std::int64_t largest = 1;
  for (int r = 0; r < size(); ++r) largest = std::max(largest, group_->call_of(r).entry_value);
  constexpr std::size_t kRound = std::size_t{64} << 10;
  const std::size_t stride = (static_cast<std::size_t>(largest) + kRound - 1) / kRound * kRound;
  Shared shared = share(0, stride * static_cast<std::size_t>(size()), Commit::kOwnPart);
  std::byte* mine = shared.block.data + stride * static_cast<std::size_t>(rank());
  const auto world = group_->shared_world();
  world->add_allocation(shared.id, std::move(shared.block), stride, group_->members());
  return Buffer(mine, bytes, [world, id = shared.id](std::byte*) { world->drop_allocation(id); });
}

std::uint32_t HostCommunicator::become_part(Recording recording) {
  group_->set_recording(recording);
  return group_->id();
}

Deadline HostCommunicator::set_deadline(Deadline deadline) {
  return group_->world().set_deadline(deadline);
}

void HostCommunicator::abort(const std::string& reason) noexcept {
  group_->world().fail(ErrorKind::kComm, reason);
}

}  // namespace drivetrain
