#include "runtime/comm/host_mail.h"

#include <algorithm>
#include <cstring>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/tensor_checks.h"

namespace drivetrain {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 10;  // two of them per channel

// At least one chunk, so that an empty message is a message.
std::size_t chunk_count(std::size_t bytes) {
  return bytes == 0 ? 1 : (bytes + kChunkBytes - 1) / kChunkBytes;
}

}  // namespace

struct HostMail::Outgoing final : Work::State {
  Outgoing(HostMail& m, const Tensor& t, int peer) : mail(m), x(t), to(peer) {}
  void wait() override { mail.finish_sending(*this); }
  CollectiveTiming timing() const override {
    return {record.arrival_ns, 0, end_ns, static_cast<std::int64_t>(x.bytes())};
  }

  HostMail& mail;
  Tensor x;
  int to;
  CallRecord record;
  Place place;
  bool started = false, done = false;
  std::size_t chunks_posted = 0;
  std::int64_t end_ns = 0;
};

HostMail::HostMail(HostGroup& group)
    : group_(group),
      channels_(static_cast<std::size_t>(group.size())),
      sources_(static_cast<std::size_t>(group.size())) {}

HostMail::~HostMail() {
  for (Channel& channel : channels_)
    if (!channel.sealed) group_.world().blocks().seal(channel.ticket);
}

Work HostMail::send(const Tensor& x, int to) {
  check_peer(CollectiveOp::kSend, to, group_.rank(), group_.size());
  group_.world().check();
  Channel& channel = channels_[static_cast<std::size_t>(to)];
  auto message = std::make_shared<Outgoing>(*this, x, to);
  message->record.op = CollectiveOp::kSend;
  message->record.dtype = x.dtype;
  message->record.count = x.count();
  message->record.root = to;
  message->record.sequence = ++channel.messages;
  message->record.arrival_ns = steady_now_ns();
  message->place = group_.world().locate(x.data, x.bytes(), {group_.member(group_.rank()), group_.member(to)});
  group_.world().note_call(group_.message_group(), message->record);
  channel.queue.push_back(message);
  progress();
  return Work(std::move(message));
}

void HostMail::progress() {
  for (int to = 0; to < group_.size(); ++to)
    while (advance(to)) {
    }
}

void HostMail::start(Channel& channel, Outgoing& message) {
  Mailbox& box = group_.mailbox(group_.rank(), message.to);
  if (message.place.allocation == Place::kOrdinary && !channel.staging.data) {
    channel.staging = group_.world().blocks().create(2 * kChunkBytes, channel.ticket);
    group_.world().blocks().commit(channel.staging, 0, 2 * kChunkBytes);
    channel.sealed = false;
  }
  box.call = message.record;
  box.place = message.place;
  box.ticket = channel.ticket;
  message.started = true;
}

bool HostMail::advance(int to) {
  Channel& channel = channels_[static_cast<std::size_t>(to)];
  if (channel.queue.empty()) return false;
  Outgoing& message = *channel.queue.front();
  Mailbox& box = group_.mailbox(group_.rank(), to);
  const std::uint32_t behind = channel.posted - box.taken.phase.load(std::memory_order_acquire);
  const bool direct = message.place.allocation != Place::kOrdinary;
  if (!message.started) {
    if (behind != 0) return false;
    if (!channel.sealed && channel.posted != 0) {
      group_.world().blocks().seal(channel.ticket);
      channel.sealed = true;
    }
    start(channel, message);
  }
  const std::size_t total = direct ? 1 : chunk_count(message.x.bytes());
  if (message.chunks_posted < total) {
    if (behind >= 2) return false;
    if (!direct) {
      const std::size_t begin = message.chunks_posted * kChunkBytes;
      const std::size_t n = std::min(kChunkBytes, message.x.bytes() - begin);
      copy_bytes(channel.staging.data + (message.chunks_posted & 1) * kChunkBytes, message.x.data + begin, n);
    }
    ++message.chunks_posted;
    publish(box.posted, ++channel.posted);
    return true;
  }
  // Staged data has left x; direct data is read by the peer where it lies.
  if (direct && behind != 0) return false;
  message.done = true;
  message.end_ns = steady_now_ns();
  group_.world().note_end(message.record, message.timing());
  channel.queue.pop_front();
  return true;
}

void HostMail::finish_sending(Outgoing& message) {
  const Channel& channel = channels_[static_cast<std::size_t>(message.to)];
  Mailbox& box = group_.mailbox(group_.rank(), message.to);
  for (;;) {
    progress();
    if (message.done) return;
    const std::uint32_t taken = box.taken.phase.load(std::memory_order_acquire);
    if (taken == channel.posted) continue;
    group_.wait(counter_of(box.taken), taken + 1, message.to, message.record);
  }
}

Work HostMail::recv(const Tensor& x, int from) {
  check_peer(CollectiveOp::kRecv, from, group_.rank(), group_.size());
  HostWorld& world = group_.world();
  world.check();
  Source& source = sources_[static_cast<std::size_t>(from)];
  Mailbox& box = group_.mailbox(from, group_.rank());
  CallRecord record;
  record.op = CollectiveOp::kRecv;
  record.dtype = x.dtype;
  record.count = x.count();
  record.root = from;
  record.sequence = ++source.messages;
  record.arrival_ns = steady_now_ns();
  world.note_call(group_.message_group(), record);
  group_.wait(counter_of(box.posted), source.taken + 1, from, record);
  if (box.call.dtype != x.dtype || box.call.count != x.count()) {
    group_.fail(ErrorKind::kComm,
                "mismatched message in " + group_.describe() + ", call #" + std::to_string(record.sequence) +
                    ": rank " + std::to_string(world.world_rank(group_.member(from))) + " called " +
                    box.call.describe() + ", rank " + std::to_string(world.world_rank(group_.member(group_.rank()))) +
                    " called " + record.describe());
  }
  const std::int64_t sent_ns = box.call.arrival_ns;
  if (box.place.allocation != Place::kOrdinary) {
    if (x.bytes() > 0) std::memcpy(x.data, world.resolve(group_.member(from), box.place), x.bytes());
    publish(box.taken, ++source.taken);
  } else {
    if (!source.staging.data) source.staging = world.blocks().open(box.ticket, 2 * kChunkBytes);
    for (std::size_t chunk = 0; chunk < chunk_count(x.bytes()); ++chunk) {
      group_.wait(counter_of(box.posted), source.taken + 1, from, record);
      const std::size_t begin = chunk * kChunkBytes;
      copy_bytes(x.data + begin, source.staging.data + (chunk & 1) * kChunkBytes,
                 std::min(kChunkBytes, x.bytes() - begin));
      publish(box.taken, ++source.taken);
    }
  }
  CollectiveTiming timing{record.arrival_ns, std::max(record.arrival_ns, sent_ns), steady_now_ns(),
                          static_cast<std::int64_t>(x.bytes())};
  world.note_end(record, timing);
  return Work(timing);
}

}  // namespace drivetrain
