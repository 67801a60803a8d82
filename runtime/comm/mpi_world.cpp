#include "runtime/comm/mpi_world.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/comm/mpi_check.h"
#include "runtime/comm/process_info.h"

namespace drivetrain {
namespace {

constexpr int kFailureTag = 1;

struct RankCard {
  std::array<char, 64> host{};
  std::int32_t pid = 0;
  std::uint64_t start_time = 0;
};

struct FailureNote {
  std::int32_t kind = 0;
  std::array<char, 2040> reason{};
};

}  // namespace

struct MpiWorld::Impl {
  MPI_Comm control = MPI_COMM_NULL;
  std::vector<RankCard> cards;
  mutable std::mutex mutex;  // of everything below
  std::atomic<bool> failed{false};
  ErrorKind kind = ErrorKind::kComm;
  std::string reason;
  FailureNote outgoing;
  std::vector<MPI_Request> sends;
  std::vector<std::vector<std::byte>> buried;
};

std::shared_ptr<MpiWorld> MpiWorld::open(std::shared_ptr<MpiSession> session, std::shared_ptr<HostWorld> host) {
  auto world = std::make_shared<MpiWorld>(std::move(session), host);
  const std::weak_ptr<MpiWorld> weak = world;
  host->set_on_failure([weak](ErrorKind kind, const std::string& reason) {
    if (const auto job = weak.lock()) job->fail(kind, reason);
  });
  host->set_on_wait([weak] {
    if (const auto job = weak.lock()) job->poll();
  });
  return world;
}

MpiWorld::MpiWorld(std::shared_ptr<MpiSession> session, std::shared_ptr<HostWorld> host)
    : session_(std::move(session)), host_(std::move(host)), impl_(std::make_unique<Impl>()) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &impl_->control), "MPI_Comm_dup");
  RankCard mine;
  host_->options().host.copy(mine.host.data(), mine.host.size() - 1);
  mine.pid = getpid();
  mine.start_time = process_start_time(mine.pid);
  impl_->cards.resize(static_cast<std::size_t>(session_->size()));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, impl_->cards.data(), sizeof mine, MPI_BYTE, impl_->control),
            "MPI_Allgather");
}

MpiWorld::~MpiWorld() {
  if (impl_->failed.load() || session_->spoiled()) {
    // Requests may be pending for ever: their memory must outlive MPI.
    static_cast<void>(impl_.release());
    return;
  }
  MPI_Comm_free(&impl_->control);
}

void MpiWorld::take_failure(ErrorKind kind, const std::string& reason) noexcept {
  session_->spoil();
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->failed.load()) return;
    impl_->kind = kind;
    impl_->reason = reason;
    impl_->failed.store(true);
  }
  host_->fail(kind, reason);
}

void MpiWorld::poll() noexcept {
  if (impl_->failed.load()) return;
  int arrived = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kFailureTag, impl_->control, &arrived, &status) != MPI_SUCCESS || !arrived) return;
  FailureNote note;
  if (MPI_Recv(&note, sizeof note, MPI_BYTE, status.MPI_SOURCE, kFailureTag, impl_->control, MPI_STATUS_IGNORE) !=
      MPI_SUCCESS)
    return;
  note.reason.back() = '\0';
  take_failure(static_cast<ErrorKind>(note.kind), note.reason.data());
}

void MpiWorld::fail(ErrorKind kind, const std::string& reason) noexcept {
  session_->spoil();
  std::string first = reason;
  try {
    host_->check();
  } catch (const Error& earlier) {  // a peer on this host failed before us: pass on its words, not our echo
    kind = earlier.kind();
    first = earlier.what();
  }
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->failed.load()) return;
    impl_->kind = kind;
    impl_->reason = first;
    impl_->failed.store(true);
    impl_->outgoing.kind = static_cast<std::int32_t>(kind);
    first.copy(impl_->outgoing.reason.data(), impl_->outgoing.reason.size() - 1);
    for (int r = 0; r < session_->size(); ++r) {
      if (r == session_->rank()) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      // Errors are ignored: a peer that cannot be told does not wait either.
      if (MPI_Isend(&impl_->outgoing, sizeof impl_->outgoing, MPI_BYTE, r, kFailureTag, impl_->control, &request) ==
          MPI_SUCCESS)
        impl_->sends.push_back(request);
    }
  }
  host_->fail(kind, first);
  // Peers that still live take it within this time; nobody waits for the others.
  for (int tries = 0; tries < 100; ++tries) {
    int done = 0;
    MPI_Testall(static_cast<int>(impl_->sends.size()), impl_->sends.data(), &done, MPI_STATUSES_IGNORE);
    if (done) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void MpiWorld::check() const {
  host_->check();
  if (!impl_->failed.load()) return;
  const std::lock_guard lock(impl_->mutex);
  throw Error(impl_->kind, impl_->reason);
}

std::string MpiWorld::describe_rank(int world_rank) const {
  const RankCard& card = impl_->cards[static_cast<std::size_t>(world_rank)];
  std::string s =
      "rank " + std::to_string(world_rank) + " (host " + card.host.data() + ", pid " + std::to_string(card.pid);
  const RankCard& mine = impl_->cards[static_cast<std::size_t>(session_->rank())];
  if (card.host == mine.host) s += std::string(", ") + name(process_state(card.pid, card.start_time));
  return s + ')';
}

void MpiWorld::bury(std::vector<std::byte> memory) {
  const std::lock_guard lock(impl_->mutex);
  impl_->buried.push_back(std::move(memory));
}

}  // namespace drivetrain
