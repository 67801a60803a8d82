// What one rank knows of its host: how to share memory, which symmetric allocations exist, who the peers are, and the
// failure note that wakes everybody. Shared by all communicators of the rank; not a communicator itself.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/error.h"
#include "runtime/comm/host_layout.h"
#include "runtime/comm/job_session.h"
#include "runtime/comm/rank_report.h"

namespace drivetrain {

struct HostOptions {
  std::chrono::milliseconds timeout{300000};  // per collective, until set_deadline() says otherwise
  std::chrono::milliseconds life_check{250};  // between two looks at the peers while waiting
  // kEverywhere: every address is valid on every rank (threads). kSymmetric: only symmetric allocations are.
  enum class Reach { kEverywhere, kSymmetric } reach = Reach::kSymmetric;
  bool check = true;          // compare the calls of the members; off: only meet
  std::string recorder_file;  // where a failure writes the flight recorders; empty: nowhere
  std::string host;           // in messages; empty: the name of this machine
  int job_ranks = 0;          // of all hosts; 0: this host is the job
  // Ordinary memory from so many bytes on is read by the kernel, where it lets us; smaller messages are staged faster.
  std::size_t copy_from_bytes = std::size_t{512} << 10;
  std::size_t staging_bytes = std::size_t{256} << 10;  // per rank and window, for memory that peers cannot reach
};

class HostWorld {
 public:
  // `ranks` are the world ranks of this host's members in order; `self` is this rank's index among them. The block is
  // world_block_bytes(ranks.size()) of zeroed shared memory. The session, if any, lasts as long as this.
  HostWorld(std::shared_ptr<BlockFactory> blocks, SharedBlock block, std::vector<int> ranks, int self,
            HostOptions options, std::shared_ptr<JobSession> session);
  ~HostWorld() { leave(); }
  HostWorld(const HostWorld&) = delete;
  HostWorld& operator=(const HostWorld&) = delete;

  int size() const { return static_cast<int>(ranks_.size()); }
  // Ranks of the whole job.
  int job_size() const { return options_.job_ranks > 0 ? options_.job_ranks : size(); }
  int self() const { return self_; }
  // On which the members together may run; true once all have joined.
  int cores() const;
  int pid(int host_index) const { return slot(host_index).pid; }
  int world_rank(int host_index) const { return ranks_[static_cast<std::size_t>(host_index)]; }
  const HostOptions& options() const { return options_; }
  BlockFactory& blocks() { return *blocks_; }
  std::uint32_t take_id() { return header().next_id.fetch_add(1) + 1; }

  // Symmetric allocations: part `stride` bytes per member, member i's at i * stride.
  void add_allocation(std::uint32_t id, SharedBlock block, std::size_t stride, std::vector<int> members);
  void drop_allocation(std::uint32_t id) noexcept;
  // Where this rank's [p, p + bytes) lies for the given members (host indices); kOrdinary if one cannot reach it.
  Place locate(const std::byte* p, std::size_t bytes, const std::vector<int>& members) const;
  // The address, here, of what host member `owner` calls `place`. Throws kLogic if this rank has released it.
  std::byte* resolve(int owner, const Place& place) const;

  // Called on the rank that fails first, to tell other hosts; and while waiting, to hear from them.
  void set_on_failure(std::function<void(ErrorKind, const std::string&)> f) { on_failure_ = std::move(f); }
  void set_on_wait(std::function<void()> f) { on_wait_ = std::move(f); }
  void waiting() const {
    if (on_wait_) on_wait_();
  }

  Deadline deadline() const;
  Deadline set_deadline(Deadline deadline);

  // The flight recorder of this rank. A call in group kUnrecorded is part of a larger one that is recorded.
  static constexpr std::uint32_t kUnrecorded = 0xffffffffu;
  void name_group(std::uint32_t group, int size, const std::string& text) { recorder_.name_group(group, size, text); }
  void note_call(std::uint32_t group, CallRecord& call) { note_call(group, call, transport_); }
  void note_call(std::uint32_t group, CallRecord& call, FlightTransport transport) {
    if (group != kUnrecorded) recorder_.begin(group, call, transport);
  }
  void note_end(const CallRecord& call, const CollectiveTiming& t) {
    recorder_.end(call, t.last_arrival_ns, t.end_ns, t.bytes);
  }
  FlightRecorder& recorder() { return recorder_; }

  // First failure wins; later ones are dropped. Everybody's pending and later collectives throw it. The rank that is
  // first writes the flight recorders of this host.
  void fail(ErrorKind kind, const std::string& reason) noexcept;
  // The same without telling other hosts: they told us.
  void take_failure(ErrorKind kind, const std::string& reason) noexcept;
  bool failed() const { return header().failed.load(std::memory_order_acquire) == WorldBlock::kFailed; }
  [[noreturn]] void throw_failure() const;
  void check() const {
    if (failed()) throw_failure();
  }

  // "rank 2 (host node1, pid 77, stopped, last call barrier() #12 in group {0, 2} of the world, done 3.2 s ago)".
  std::string describe_member(int host_index) const;
  RankReport report(int host_index) const;
  std::vector<RankReport> reports() const;  // of this host
  // Of every rank that can be asked: of this host, or what set_survey() says.
  std::vector<RankReport> survey() const;
  void set_survey(std::function<std::vector<RankReport>()> f) { survey_ = std::move(f); }
  // Who keeps these world ranks' collective from finishing (rank_report.h). Asks other hosts; takes at most seconds.
  std::string name_absent(const std::vector<int>& awaited) const {
    return drivetrain::name_absent(awaited, survey());
  }
  // A member of this host whose process died without leaving, -1 for none. Looks at the members after this one up to
  // the first that lives, so that all ranks together look at everybody.
  int find_dead_successor() const;
  // This rank takes part in nothing more.
  void leave() noexcept { slot(self_).left.store(1, std::memory_order_release); }
  // False once the member has left or its process is gone (or a zombie). True where it cannot be told.
  bool alive(int host_index) const;

 private:
  struct Allocation {
    SharedBlock block;
    std::size_t stride = 0;
    std::vector<int> members;  // host indices, in the order of the parts
  };
  WorldBlock& header() const { return *reinterpret_cast<WorldBlock*>(block_.data); }
  WorldSlot& slot(int host_index) const;
  RankState state_of(int host_index) const;
  // False if there was a failure before.
  bool mark_failed(ErrorKind kind, const std::string& reason) noexcept;
  void write_recorders(const std::string& reason) const noexcept;

  std::shared_ptr<JobSession> session_;
  std::shared_ptr<BlockFactory> blocks_;
  SharedBlock block_;
  std::vector<int> ranks_;
  int self_;
  HostOptions options_;
  FlightRecorder recorder_;
  FlightTransport transport_;
  std::function<void(ErrorKind, const std::string&)> on_failure_;
  std::function<void()> on_wait_;
  std::function<std::vector<RankReport>()> survey_;
  mutable std::mutex mutex_;  // of everything below: other threads of the rank may set it
  Deadline deadline_;
  std::map<std::uint32_t, Allocation> allocations_;
};

}  // namespace drivetrain
