#include "runtime/comm/host_comm.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/tensor_checks.h"

namespace drivetrain {

HostCommunicator::HostCommunicator(std::unique_ptr<HostGroup> group)
    : group_(std::move(group)), mail_(*group_), views_(static_cast<std::size_t>(group_->size())) {
  group_->set_idle([this] { mail_.progress(); });
  targets_.reserve(views_.size());
  sources_.reserve(views_.size() + 1);
}

std::string HostCommunicator::transport() const {
  return group_->world().blocks().transport();
}

HostCommunicator::Entered HostCommunicator::enter(CallRecord record, const Tensor& exposed, int shares) {
  Entered call{record, 0, Path::kInline};
  const std::size_t stride = bytes_of(record.count, record.dtype);
  if (stride * static_cast<std::size_t>(shares) <= kInlineBytes) {
    if (exposed.present()) copy_bytes(group_->message(), exposed.data, exposed.bytes());
    call.last_arrival_ns = group_->enter(call.record);
    for (int r = 0; r < size(); ++r) show(r, group_->message_of(r), stride);
    return call;
  }
  Place place{Place::kNothing, 0};
  if (exposed.present()) place = group_->world().locate(exposed.data, exposed.bytes(), group_->members());
  if (place.allocation == Place::kOrdinary) place.offset = reinterpret_cast<std::uintptr_t>(exposed.data);
  group_->put_message(place);
  call.last_arrival_ns = group_->enter(call.record);
  bool all_reachable = true;
  for (int r = 0; r < size(); ++r) {
    place = group_->message_of<Place>(r);
    const bool ordinary = place.allocation == Place::kOrdinary;
    const bool reachable = !ordinary && place.allocation != Place::kNothing;
    show(r, reachable ? group_->world().resolve(group_->member(r), place) : nullptr, stride);
    views_[static_cast<std::size_t>(r)].remote = ordinary ? place.offset : 0;
    all_reachable = all_reachable && !ordinary;
  }
  // Everybody has seen the same places, so everybody takes the same path.
  call.path = all_reachable                                         ? Path::kDirect
              : can_copy(stride * static_cast<std::size_t>(shares)) ? Path::kCopied
                                                                    : Path::kStaged;
  return call;
}

Work HostCommunicator::finish(const Entered& call, std::size_t bytes) {
  if (call.path == Path::kDirect || call.path == Path::kCopied)
    group_->meet();  // nobody returns while its memory is in use
  return Work(group_->leave(call.record, call.last_arrival_ns, bytes));
}

template <class Consume>
Work HostCommunicator::run(CallRecord record, const Tensor& exposed, int shares, std::size_t bytes,
                           const Consume& consume) {
  const Entered call = enter(record, exposed, shares);
  if (call.path == Path::kStaged)
    run_staged(call.record, exposed, shares, consume);
  else if (call.path == Path::kCopied)
    for_copied_windows(call.record, exposed, shares == 1 ? 0 : rank(), consume);
  else
    consume(Window{call.path, 0, record.count});
  return finish(call, bytes);
}

template <class Consume>
void HostCommunicator::run_staged(const CallRecord& record, const Tensor& exposed, int shares,
                                  const Consume& consume) {
  const DType dtype = record.dtype;
  const std::size_t stride = bytes_of(record.count, dtype);
  const Staging plan = plan_staging(record.count, dtype, shares);
  for (std::int64_t window = 0; window < plan.windows; ++window) {
    const std::int64_t begin = window * plan.step, count = std::min(plan.step, record.count - begin);
    const std::size_t piece = bytes_of(count, dtype);
    for (int r = 0; r < size(); ++r) show(r, staging(r, window), piece);
    if (exposed.present()) {
      const View mine{exposed.data + bytes_of(begin, dtype), stride};
      for (int q = 0; q < shares; ++q)  // of several shares this member's own is no peer's business
        if (shares == 1 || q != rank()) copy_bytes(view(rank()).share(q), mine.share(q), piece);
      show(rank(), mine.data, mine.stride);
    }
    group_->meet();
    consume(Window{Path::kStaged, begin, count});
  }
}

std::byte* HostCommunicator::staging(int r, std::int64_t window) {
  const std::size_t area = group_->world().options().staging_bytes;
  // Made on the way, in the same call on every member.
  if (!staging_.data) staging_ = share(0, 2 * area * static_cast<std::size_t>(size()), Commit::kOwnPart).block;
  return staging_.data + (static_cast<std::size_t>(r) * 2 + static_cast<std::size_t>(window & 1)) * area;
}

HostCommunicator::Staging HostCommunicator::plan_staging(std::int64_t count, DType dtype, int shares) const {
  const std::size_t per_element = size_of(dtype) * static_cast<std::size_t>(shares);
  const auto room = static_cast<std::int64_t>(group_->world().options().staging_bytes / per_element);
  constexpr std::int64_t kRound = 64;
  const std::int64_t most = std::max<std::int64_t>(1, room > kRound ? room / kRound * kRound : room);
  const std::int64_t windows = (count + most - 1) / most, even = (count + windows - 1) / windows;
  return {std::min(most, (even + kRound - 1) / kRound * kRound), windows};
}

HostCommunicator::Range HostCommunicator::slice_of(int r, std::int64_t count, DType dtype) const {
  const auto line = static_cast<std::int64_t>(kCacheLine / size_of(dtype));
  const std::int64_t lines = (count + line - 1) / line;
  const std::int64_t begin = std::min(count, lines * r / size() * line);
  const std::int64_t end = std::min(count, lines * (r + 1) / size() * line);
  return {begin, end - begin};
}

std::span<const std::byte* const> HostCommunicator::sources(int q, std::size_t offset, const std::byte* carry) {
  sources_.clear();
  if (carry) sources_.push_back(carry);
  for (const View& v : views_) sources_.push_back(v.share(q) + offset);
  return sources_;
}

void HostCommunicator::reduce_range(const Range& range, DType dtype, ReduceOp op, std::span<const View> targets) {
  const std::size_t offset = bytes_of(range.begin, dtype);
  targets_.clear();
  for (const View& target : targets) targets_.push_back(target.data + offset);
  reduce_into(targets_, sources(0, offset), dtype, op, range.count, group_->threads());
}

Work HostCommunicator::all_reduce(Tensor x, ReduceOp op) {
  CallRecord record = make_record(CollectiveOp::kAllReduce, x.dtype, x.count());
  record.reduce = op;
  const Entered call = enter(record, x, 1);
  if (call.path == Path::kInline)
    reduce_into(std::span(&x.data, 1), sources(0), x.dtype, op, x.count(), 1);
  else if (call.path == Path::kDirect)
    reduce_range(slice_of(rank(), x.count(), x.dtype), x.dtype, op, views_);
  else if (call.path == Path::kCopied)
    all_reduce_copied(x, op);
  else
    all_reduce_staged(x, op);
  return finish(call, x.bytes());
}

// Only what peers need passes through staging memory: before the sum the slices of the others, after it this member's.
// The next window is packed before the sums of this one are fetched, so a window costs one meeting. Slices are the same
// in every window: what a peer still fetches of the last one is never in the way of packing the next but one.
void HostCommunicator::all_reduce_staged(const Tensor& x, ReduceOp op) {
  const DType dtype = x.dtype;
  const auto [step, windows] = plan_staging(x.count(), dtype, 1);
  const auto part = [&](std::int64_t w) { return x.flat(w * step, std::min(step, x.count() - w * step)); };
  const auto slice = [&](int r, const Tensor& t) {
    const Range whole = slice_of(r, step, dtype);
    const std::int64_t begin = std::min(whole.begin, t.count());
    return Range{begin, std::min(whole.begin + whole.count, t.count()) - begin};
  };
  const auto for_peers = [&](const Tensor& t, const auto& copy) {
    for (int d = 1; d < size(); ++d) {
      const int r = (rank() + d) % size();
      const Range range = slice(r, t);
      copy(r, bytes_of(range.begin, dtype), bytes_of(range.count, dtype));
    }
  };
  const auto pack = [&](std::int64_t w) {
    for_peers(part(w), [&](int, std::size_t offset, std::size_t bytes) {
      copy_bytes(staging(rank(), w) + offset, part(w).data + offset, bytes);
    });
  };
  pack(0);
  group_->meet();
  for (std::int64_t w = 0; w < windows; ++w) {
    const Tensor t = part(w);
    for (int r = 0; r < size(); ++r) show(r, r == rank() ? t.data : staging(r, w), 0);
    reduce_range(slice(rank(), t), dtype, op, std::array{View{t.data, 0}, View{staging(rank(), w), 0}});
    if (w + 1 < windows) pack(w + 1);
    group_->meet();
    for_peers(t, [&](int r, std::size_t offset, std::size_t bytes) {
      copy_bytes(t.data + offset, staging(r, w) + offset, bytes);
    });
  }
}

Work HostCommunicator::reduce(Tensor x, int root, ReduceOp op) {
  check_root(CollectiveOp::kReduce, root, size());
  CallRecord record = make_record(CollectiveOp::kReduce, x.dtype, x.count());
  record.reduce = op;
  record.root = root;
  return run(record, x, 1, x.bytes(), [&](const Window& window) {
    if (window.path == Path::kDirect)
      return reduce_range(slice_of(rank(), x.count(), x.dtype), x.dtype, op, std::span(&view(root), 1));
    if (rank() != root) return;
    std::byte* target = x.data + bytes_of(window.begin, x.dtype);
    reduce_into(std::span(&target, 1), sources(0), x.dtype, op, window.count, group_->threads());
  });
}

Work HostCommunicator::all_gather(Tensor out, Tensor in) {
  check_shares(CollectiveOp::kAllGather, out, in, size());
  return run(make_record(CollectiveOp::kAllGather, in.dtype, in.count()), in, 1, out.bytes(),
             [&](const Window& window) {
               for (int d = 0; d < size(); ++d) {
                 const int r = (rank() + d) % size();  // not all from the same member at once
                 copy_bytes(out.data + bytes_of(r * in.count() + window.begin, in.dtype), view(r).data,
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
    const std::size_t offset = bytes_of(window.begin, out.dtype);
    std::byte* target = out.data + offset;
    const std::byte* start = carry.present() ? carry.data + offset : nullptr;
    reduce_into(std::span(&target, 1), sources(rank(), 0, start), out.dtype, op, window.count, group_->threads());
  });
}

Work HostCommunicator::broadcast(Tensor x, int root) {
  check_root(CollectiveOp::kBroadcast, root, size());
  CallRecord record = make_record(CollectiveOp::kBroadcast, x.dtype, x.count());
  record.root = root;
  return run(record, rank() == root ? x : Tensor{}, 1, x.bytes(), [&](const Window& window) {
    if (rank() == root) return;
    copy_bytes(x.data + bytes_of(window.begin, x.dtype), view(root).data, bytes_of(window.count, x.dtype));
  });
}

Work HostCommunicator::all_to_all(Tensor out, Tensor in) {
  check_exchange(out, in, size());
  const std::int64_t share = in.count() / size();
  return run(make_record(CollectiveOp::kAllToAll, in.dtype, share), in, size(), in.bytes(),
             [&](const Window& window) {
               for (int d = 0; d < size(); ++d) {
                 const int r = (rank() + d) % size();
                 copy_bytes(out.data + bytes_of(r * share + window.begin, in.dtype), view(r).share(rank()),
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
  group_->leave(record, group_->enter(record), 0);
}

std::int64_t HostCommunicator::agree(CallRecord& call) {
  return group_->enter(call);
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
