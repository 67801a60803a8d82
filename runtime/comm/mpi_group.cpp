#include "runtime/comm/mpi_group.h"

#include <algorithm>
#include <array>
#include <thread>

#include "runtime/comm/arithmetic.h"
#include "runtime/comm/host_wait.h"
#include "runtime/comm/mpi_check.h"

namespace drivetrain {
namespace {

// MPI counts in int; pieces of this size also keep single messages within what transports like.
constexpr std::size_t kPieceBytes = std::size_t{256} << 20;

}  // namespace

MpiGroup::MpiGroup(std::shared_ptr<MpiWorld> world, MPI_Comm comm) : world_(std::move(world)), comm_(comm) {
  int size = 0;
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm_, &size), "MPI_Comm_size");
  const std::array<int, 2> mine = {world_->session().rank(), world_->take_group_number()};
  std::vector<std::array<int, 2>> all(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&mine, 2, MPI_INT, all.data(), 2, MPI_INT, comm_), "MPI_Allgather");
  for (const auto& [world_rank, number] : all) ranks_.push_back(world_rank);
  // The first member's number for it, which no other group with the same first member has.
  constexpr std::uint32_t kOverMpi = 0x80000000u, kNumbers = 1u << 12;
  id_ =
      kOverMpi | static_cast<std::uint32_t>(all[0][0]) * kNumbers | static_cast<std::uint32_t>(all[0][1]) % kNumbers;
  world_->host().name_group(id_, size, describe());
  cards_.resize(ranks_.size() * (sizeof(CallRecord) + kRiderBytes));
}

MpiGroup::~MpiGroup() {
  if (world_->session().spoiled()) {
    world_->bury(std::move(cards_));
    world_->bury(std::move(scratch_));
    return;
  }
  MPI_Comm_free(&comm_);
}

std::string MpiGroup::describe() const {
  if (size() == world_->session().size()) return "the world of " + std::to_string(size()) + " ranks";
  constexpr int kShown = 8;
  std::string s = "group {";
  for (int r = 0; r < std::min(size(), kShown); ++r) s += (r ? ", " : "") + std::to_string(world_rank(r));
  if (size() > kShown) s += ", ... " + std::to_string(size()) + " ranks";
  return s + "} of the world";
}

std::string MpiGroup::describe(const CallRecord& call) const {
  std::string s = call.describe() + " #" + std::to_string(call.sequence) + " in " + describe();
  if (recording_ != Recording::kAll) s += ", a step of " + describe_newest(world_->host().recorder().log());
  return s;
}

std::uint32_t MpiGroup::become_part(Recording recording) {
  constexpr std::uint32_t kLarger = 0x40000000u;
  recording_ = recording;
  world_->host().name_group(id_ | kLarger, size(), describe());
  return id_ | kLarger;
}

void MpiGroup::note_message(CallRecord& call) const {
  if (recording_ != Recording::kNothing) world_->host().note_call(id_, call, FlightTransport::kMpi);
}

std::int64_t MpiGroup::enter(CallRecord& call, std::span<const std::byte> rider) {
  world_->check();
  call.sequence = ++sequence_;
  call.arrival_ns = steady_now_ns();
  if (recording_ == Recording::kAll) world_->host().note_call(id_, call, FlightTransport::kMpi);
  current_ = call;
  std::byte* mine = card(rank_);
  std::memcpy(mine, &call, sizeof call);
  copy_bytes(mine + sizeof call, rider.data(), rider.size());
  const std::size_t bytes = sizeof call + rider.size();
  for (int d = 1; d < size(); ++d) {
    // A peer that calls something else may send more or less than expected: room for the most.
    const int from = (rank_ + size() - d) % size(), to = (rank_ + d) % size();
    start_into(transfers_, card(from), sizeof call + kRiderBytes, from, Tag::kCall);
    start(transfers_, mine, bytes, to, Tag::kCall);
  }
  blocked_on_ = rank_;
  finish();
  call.last_rank = blocked_on_;
  const std::int64_t last_arrival_ns = size() > 1 ? steady_now_ns() : call.arrival_ns;
  if (world_->host().options().check) compare(call);
  return last_arrival_ns;
}

void MpiGroup::compare(const CallRecord& mine) {
  for (int r = 1; r < size(); ++r) {
    if (call_of(0).same_call(call_of(r))) continue;
    fail(ErrorKind::kComm, "mismatched calls in " + describe() + ", call #" + std::to_string(mine.sequence) +
                               ": rank " + std::to_string(world_rank(0)) + " called " + call_of(0).describe() +
                               ", rank " + std::to_string(world_rank(r)) + " called " + call_of(r).describe());
  }
}

void MpiGroup::start(std::vector<Transfer>& list, const std::byte* data, std::size_t bytes, int to, Tag tag) {
  for (std::size_t begin = 0; begin < bytes; begin += kPieceBytes) {
    const auto n = static_cast<int>(std::min(kPieceBytes, bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(data + begin, n, MPI_BYTE, to, static_cast<int>(tag), comm_, &request),
              "MPI_Isend to rank " + std::to_string(world_rank(to)));
    list.push_back({request, to});
  }
}

void MpiGroup::start_into(std::vector<Transfer>& list, std::byte* data, std::size_t bytes, int from, Tag tag) {
  for (std::size_t begin = 0; begin < bytes; begin += kPieceBytes) {
    const auto n = static_cast<int>(std::min(kPieceBytes, bytes - begin));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(data + begin, n, MPI_BYTE, from, static_cast<int>(tag), comm_, &request),
              "MPI_Irecv from rank " + std::to_string(world_rank(from)));
    list.push_back({request, from});
  }
}

void MpiGroup::start_send(const std::byte* data, std::size_t bytes, int to) {
  start(transfers_, data, bytes, to, Tag::kData);
}

void MpiGroup::start_recv(std::byte* data, std::size_t bytes, int from) {
  start_into(transfers_, data, bytes, from, Tag::kData);
}

void MpiGroup::finish() {
  wait(transfers_, current_);
}

bool MpiGroup::test(std::vector<Transfer>& list) {
  for (Transfer& transfer : list) {
    if (transfer.request == MPI_REQUEST_NULL) continue;
    int done = 0;
    check_mpi(MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE),
              "a transfer with rank " + std::to_string(world_rank(transfer.peer)));
    if (!done) {
      blocked_on_ = transfer.peer;
      return false;
    }
  }
  list.clear();
  return true;
}

void MpiGroup::wait(std::vector<Transfer>& list, const CallRecord& call) {
  // MPI gives the core away in every test when there are more ranks than cores; so few tests, then sleep.
  constexpr int kTests = 20;
  std::int64_t since_ns = 0;
  try {
    for (int tries = 0; !test(list); ++tries) {
      if (tries < kTests) continue;
      std::this_thread::sleep_for(std::chrono::microseconds(std::min(10 + tries, 200)));
      if (tries % 16 != 0) continue;
      world_->poll();
      world_->check();
      const std::int64_t now_ns = steady_now_ns();
      if (since_ns == 0) since_ns = now_ns;
      const Deadline deadline = world_->host().deadline();
      if (now_ns - since_ns < std::chrono::nanoseconds(deadline.limit).count()) continue;
      std::vector<int> awaited;
      for (const Transfer& transfer : list)
        if (transfer.request != MPI_REQUEST_NULL) awaited.push_back(world_rank(transfer.peer));
      fail(ErrorKind::kHang, describe(call) + " did not finish within its deadline of " +
                                 std::to_string(deadline.limit.count()) +
                                 " ms; absent: " + world_->host().name_absent(awaited) + ". Raise " + deadline.key +
                                 " if this is expected");
    }
  } catch (const Error& error) {
    give_up(list);
    world_->fail(error.kind(), error.what());
    throw;
  }
}

void MpiGroup::give_up(std::vector<Transfer>& list) {
  for (Transfer& transfer : list) {
    if (transfer.request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&transfer.request);
    MPI_Request_free(&transfer.request);
  }
  list.clear();
}

void MpiGroup::fail(ErrorKind kind, const std::string& reason) {
  world_->fail(kind, reason);
  throw Error(kind, reason);
}

std::byte* MpiGroup::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return scratch_.data();
}

}  // namespace drivetrain
