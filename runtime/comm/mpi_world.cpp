#include "runtime/comm/mpi_world.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <thread>

#include "runtime/comm/host_wait.h"
#include "runtime/comm/mpi_check.h"

namespace drivetrain {
namespace {

constexpr std::chrono::milliseconds kLook{250};
constexpr std::chrono::milliseconds kPatience{2000};  // for answers; eight looks

enum Tag : int { kFailureTag = 1, kQuestionTag = 2, kAnswerTag = 3 };

struct RankCard {
  std::array<char, 64> host{};
  std::int32_t pid = 0;
};

struct FailureNote {
  std::int32_t kind = 0;
  std::array<char, 2040> reason{};
};

// Of a question; in an answer, the reports of the answering rank's host follow it.
struct Head {
  std::int64_t question = 0;
};

}  // namespace

struct MpiWorld::Impl {
  // A small message on its way; MPI reads the bytes until it is done.
  struct Outgoing {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void send(int to, Tag tag, const void* data, std::size_t bytes) {
    Outgoing& message = outgoing.emplace_back();
    const auto* begin = static_cast<const std::byte*>(data);
    message.bytes.assign(begin, begin + bytes);
    // Errors are ignored: a peer that cannot be told does not wait either.
    MPI_Isend(message.bytes.data(), static_cast<int>(bytes), MPI_BYTE, to, tag, control, &message.request);
  }
  bool all_sent() {
    outgoing.remove_if([](Outgoing& message) {
      int done = 1;
      return MPI_Test(&message.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
    });
    return outgoing.empty();
  }

  MPI_Comm control = MPI_COMM_NULL;
  std::vector<RankCard> cards;
  mutable std::mutex mutex;  // of everything below, and of messages on `control`
  std::atomic<bool> failed{false};
  ErrorKind kind = ErrorKind::kComm;
  std::string reason;
  std::list<Outgoing> outgoing;
  std::int32_t question = 0;  // number of this rank's latest
  std::vector<RankReport> answers;
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
  host->set_survey([weak] {
    const auto job = weak.lock();
    return job ? job->survey() : std::vector<RankReport>();
  });
  return world;
}

MpiWorld::MpiWorld(std::shared_ptr<MpiSession> session, std::shared_ptr<HostWorld> host)
    : session_(std::move(session)), host_(std::move(host)), impl_(std::make_unique<Impl>()) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &impl_->control), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(impl_->control, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  RankCard mine;
  host_->options().host.copy(mine.host.data(), mine.host.size() - 1);
  mine.pid = getpid();
  impl_->cards.resize(static_cast<std::size_t>(session_->size()));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, impl_->cards.data(), sizeof mine, MPI_BYTE, impl_->control),
            "MPI_Allgather");
  watch_ = std::make_unique<Watch>(kLook, [this] { look(); });
}

MpiWorld::~MpiWorld() {
  watch_.reset();
  if (impl_->failed.load() || session_->spoiled()) {
    // Requests may be pending for ever: their memory must outlive MPI.
    static_cast<void>(impl_.release());
    return;
  }
  MPI_Comm_free(&impl_->control);
}

void MpiWorld::look() noexcept {
  poll();
  if (impl_->failed.load() || host_->failed()) return;
  const int dead = host_->find_dead_successor();
  if (dead >= 0)
    fail(ErrorKind::kComm, host_->describe_member(dead) + " is gone; rank " + std::to_string(session_->rank()) +
                               " on its host noticed");
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
  host_->take_failure(kind, reason);
}

void MpiWorld::poll() noexcept {
  FailureNote note;
  bool told = false;
  {
    const std::unique_lock lock(impl_->mutex, std::try_to_lock);
    if (!lock.owns_lock()) return;  // another thread is at it
    impl_->all_sent();
    for (;;) {
      int arrived = 0, bytes = 0;
      MPI_Status status;
      if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, impl_->control, &arrived, &status) != MPI_SUCCESS || !arrived)
        break;
      MPI_Get_count(&status, MPI_BYTE, &bytes);
      std::vector<std::byte> message(static_cast<std::size_t>(bytes));
      if (MPI_Recv(message.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, impl_->control,
                   MPI_STATUS_IGNORE) != MPI_SUCCESS)
        break;
      if (status.MPI_TAG == kFailureTag && message.size() == sizeof note) {
        std::memcpy(&note, message.data(), sizeof note);
        note.reason.back() = '\0';
        told = true;
      } else if (status.MPI_TAG == kQuestionTag) {
        answer(status.MPI_SOURCE, message);
      } else if (status.MPI_TAG == kAnswerTag) {
        take_answer(message);
      }
    }
  }
  if (told) take_failure(static_cast<ErrorKind>(note.kind), note.reason.data());
}

void MpiWorld::answer(int to, const std::vector<std::byte>& question) {
  Head head;
  std::memcpy(&head, question.data(), std::min(question.size(), sizeof head));
  const auto reports = host_->reports();
  std::vector<std::byte> message(sizeof head + reports.size() * sizeof(RankReport));
  std::memcpy(message.data(), &head, sizeof head);
  std::memcpy(message.data() + sizeof head, reports.data(), reports.size() * sizeof(RankReport));
  impl_->send(to, kAnswerTag, message.data(), message.size());
}

void MpiWorld::take_answer(const std::vector<std::byte>& message) {
  Head head;
  if (message.size() < sizeof head) return;
  std::memcpy(&head, message.data(), sizeof head);
  if (head.question != impl_->question) return;
  for (std::size_t at = sizeof head; at + sizeof(RankReport) <= message.size(); at += sizeof(RankReport))
    std::memcpy(&impl_->answers.emplace_back(), message.data() + at, sizeof(RankReport));
}

std::vector<RankReport> MpiWorld::survey() {
  const auto count = static_cast<std::size_t>(session_->size());
  std::vector<RankReport> reports(count);
  std::vector<bool> known(count);
  const auto take = [&](const std::vector<RankReport>& some) {
    for (const RankReport& report : some) {
      const auto r = static_cast<std::size_t>(report.world_rank);
      if (r >= count) continue;
      reports[r] = report;
      known[r] = true;
    }
  };
  take(host_->reports());
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->answers.clear();
    const Head question{++impl_->question};
    for (std::size_t r = 0; r < count; ++r)
      if (!known[r]) impl_->send(static_cast<int>(r), kQuestionTag, &question, sizeof question);
  }
  const std::int64_t until_ns = steady_now_ns() + std::chrono::nanoseconds(kPatience).count();
  while (std::find(known.begin(), known.end(), false) != known.end() && steady_now_ns() < until_ns) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    poll();
    const std::lock_guard lock(impl_->mutex);
    take(impl_->answers);
  }
  for (std::size_t r = 0; r < count; ++r) {
    if (known[r]) continue;
    reports[r].world_rank = static_cast<std::int32_t>(r);
    reports[r].pid = impl_->cards[r].pid;
    reports[r].host = impl_->cards[r].host;
    reports[r].state = RankState::kSilent;
  }
  return reports;
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
    FailureNote note;
    note.kind = static_cast<std::int32_t>(kind);
    first.copy(note.reason.data(), note.reason.size() - 1);
    for (int r = 0; r < session_->size(); ++r)
      if (r != session_->rank()) impl_->send(r, kFailureTag, &note, sizeof note);
  }
  host_->take_failure(kind, first);
  // Peers that still live take it within this time; nobody waits for the others.
  for (int tries = 0; tries < 100; ++tries) {
    {
      const std::lock_guard lock(impl_->mutex);
      if (impl_->all_sent()) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void MpiWorld::check() const {
  host_->check();
  if (!impl_->failed.load()) return;
  const std::lock_guard lock(impl_->mutex);
  throw Error(impl_->kind, impl_->reason);
}

void MpiWorld::bury(std::vector<std::byte> memory) {
  const std::lock_guard lock(impl_->mutex);
  impl_->buried.push_back(std::move(memory));
}

}  // namespace drivetrain
