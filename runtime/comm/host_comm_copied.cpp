// Ordinary memory that the kernel lets members read from one another: each piece is copied once, into scratch memory
// that stays in the cache, or to where it belongs.
#include <algorithm>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/host_comm.h"
#include "runtime/comm/peer_memory.h"

namespace drivetrain {
namespace {

constexpr std::size_t kScratchBytes = std::size_t{256} << 10;  // for one piece of every member

std::int64_t elements_in(std::size_t bytes, DType dtype) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / kCacheLine * kCacheLine / size_of(dtype)));
}

}  // namespace

bool HostCommunicator::can_copy(std::size_t bytes) {
  HostWorld& world = group_->world();
  if (bytes < world.options().copy_from_bytes || transport() != "shm") return false;
  if (copies_) return *copies_;
  struct Probe {
    std::uint64_t address, word;
  };
  // Unlikely to be found where a wrong process number leads.
  const auto word = static_cast<std::uint64_t>(steady_now_ns()) * 2654435761u + static_cast<std::uint64_t>(rank());
  CallRecord record = make_record(CollectiveOp::kShare, DType::kU8, 0);
  group_->put_message(Probe{reinterpret_cast<std::uintptr_t>(&word), word});
  group_->leave(record, group_->enter(record), 0);
  bool able = true;
  for (int r = 0; r < size(); ++r) {
    const auto probe = group_->message_of<Probe>(r);
    std::uint64_t found = 0;
    able = able &&
           read_process(world.pid(group_->member(r)), probe.address, reinterpret_cast<std::byte*>(&found),
                        sizeof found) &&
           found == probe.word;
  }
  group_->put_message(able);
  group_->leave(record, group_->enter(record), 0);
  for (int r = 0; r < size(); ++r) able = able && group_->message_of<bool>(r);
  copies_ = able;
  return able;
}

void HostCommunicator::fetch(int r, const View& from, std::size_t offset, std::byte* to, std::size_t bytes) {
  if (from.data) return copy_bytes(to, from.data + offset, bytes);
  if (!read_process(group_->world().pid(group_->member(r)), from.remote + offset, to, bytes))
    group_->fail(ErrorKind::kComm, "the memory of " + group_->world().describe_member(group_->member(r)) +
                                       " cannot be read any more; is it gone?");
}

std::byte* HostCommunicator::scratch_of(int r) {
  if (scratch_.empty()) scratch_.resize(kScratchBytes + static_cast<std::size_t>(size()) * kCacheLine);
  return scratch_.data() + static_cast<std::size_t>(r) * scratch_part();
}

std::size_t HostCommunicator::scratch_part() const {
  return std::max(kCacheLine, kScratchBytes / static_cast<std::size_t>(size()) / kCacheLine * kCacheLine);
}

void HostCommunicator::for_copied_windows(const CallRecord& record, const Tensor& exposed, int share,
                                          const std::function<void(const Window&)>& consume) {
  if (record.op == CollectiveOp::kReduce && record.root != rank()) return;
  const std::vector<View> origins = views_;
  const std::size_t start = bytes_of(record.count, record.dtype) * static_cast<std::size_t>(share);
  const std::int64_t step = elements_in(scratch_part(), record.dtype);
  for (std::int64_t begin = 0; begin < record.count; begin += step) {
    const std::int64_t count = std::min(step, record.count - begin);
    const std::size_t offset = start + bytes_of(begin, record.dtype);
    for (int r = 0; r < size(); ++r) {
      const View& origin = origins[static_cast<std::size_t>(r)];
      show(r, scratch_of(r), 0);
      if (r == rank())
        show(r, exposed.present() ? exposed.data + offset : nullptr, 0);
      else if (origin.data || origin.remote != 0)
        fetch(r, origin, offset, scratch_of(r), bytes_of(count, record.dtype));
    }
    consume(Window{Path::kCopied, begin, count});
  }
}

void HostCommunicator::all_reduce_copied(const Tensor& x, ReduceOp op) {
  const std::vector<View> origins = views_;
  const Range mine = slice_of(rank(), x.count(), x.dtype);
  const std::int64_t step = elements_in(scratch_part(), x.dtype);
  for (std::int64_t begin = 0; begin < mine.count; begin += step) {
    const std::int64_t count = std::min(step, mine.count - begin);
    const std::size_t offset = bytes_of(mine.begin + begin, x.dtype);
    std::byte* target = x.data + offset;
    for (int r = 0; r < size(); ++r) {
      show(r, r == rank() ? target : scratch_of(r), 0);
      if (r != rank())
        fetch(r, origins[static_cast<std::size_t>(r)], offset, scratch_of(r), bytes_of(count, x.dtype));
    }
    reduce_into(std::span(&target, 1), sources(0), x.dtype, op, count, group_->threads());
  }
  group_->meet();
  for (int d = 1; d < size(); ++d) {
    const int r = (rank() + d) % size();
    const Range slice = slice_of(r, x.count(), x.dtype);
    const std::size_t offset = bytes_of(slice.begin, x.dtype);
    fetch(r, origins[static_cast<std::size_t>(r)], offset, x.data + offset, bytes_of(slice.count, x.dtype));
  }
}

}  // namespace drivetrain
