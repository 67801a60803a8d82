// The mechanics of one group of ranks over MPI: entering a collective (everybody tells everybody what it calls, small
// data rides along), point-to-point transfers of any size, waiting with a deadline. Included by the mpi_* files only.
#pragma once
#include <mpi.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/mpi_world.h"

namespace drivetrain {

class MpiGroup {
 public:
  // Data up to this size travels with the call record.
  static constexpr std::size_t kRiderBytes = 4096;

  // Takes over `comm`, whose errors it returns.
  MpiGroup(std::shared_ptr<MpiWorld> world, MPI_Comm comm);
  ~MpiGroup();
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  MPI_Comm comm() const { return comm_; }
  MpiWorld& world() const { return *world_; }
  const std::shared_ptr<MpiWorld>& shared_world() const { return world_; }
  int world_rank(int r) const { return ranks_[static_cast<std::size_t>(r)]; }
  std::string describe() const;
  std::string describe(const CallRecord& call) const;  // as HostGroup's
  std::uint32_t id() const { return id_; }  // equal on all members, unlike that of any other group of theirs
  // Returns the number under which the larger communicator, whose calls have numbers of their own, is recorded.
  std::uint32_t become_part(Recording recording);
  void note_message(CallRecord& call) const;
  void note_end(const CallRecord& call, const CollectiveTiming& timing) const {
    world_->host().note_end(call, timing);
  }

  // Exchanges the call and up to kRiderBytes of data with every member, and compares. Throws kComm on a mismatch
  // (on every rank, naming both calls), kHang after the deadline, the world's failure otherwise. Returns the last
  // arrival: when, on this rank's clock, the last member's call was here.
  std::int64_t enter(CallRecord& call, std::span<const std::byte> rider);
  const CallRecord& call_of(int r) const { return *reinterpret_cast<const CallRecord*>(card(r)); }
  std::byte* rider_of(int r) { return card(r) + sizeof(CallRecord); }

  // One transfer of the current collective; large ones go in pieces that MPI can count. Nothing for no bytes.
  void start_send(const std::byte* data, std::size_t bytes, int to);
  void start_recv(std::byte* data, std::size_t bytes, int from);
  // Waits for all transfers started.
  void finish();

  // Messages (send/recv) have their own order and tag.
  enum class Tag : int { kCall = 1, kData = 2, kMessage = 3 };
  struct Transfer {
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = 0;
  };
  void start(std::vector<Transfer>& list, const std::byte* data, std::size_t bytes, int to, Tag tag);
  void start_into(std::vector<Transfer>& list, std::byte* data, std::size_t bytes, int from, Tag tag);
  // True when all of them are done.
  bool test(std::vector<Transfer>& list);
  void wait(std::vector<Transfer>& list, const CallRecord& call);
  [[noreturn]] void fail(ErrorKind kind, const std::string& reason);

  // Scratch memory of the current collective, kept when the collective fails.
  std::byte* scratch(std::size_t bytes);

 private:
  std::byte* card(int r) const {
    return const_cast<std::byte*>(cards_.data()) + static_cast<std::size_t>(r) * (sizeof(CallRecord) + kRiderBytes);
  }
  void compare(const CallRecord& mine);
  void give_up(std::vector<Transfer>& list);

  std::shared_ptr<MpiWorld> world_;
  MPI_Comm comm_;
  int rank_ = 0;
  std::vector<int> ranks_;  // world ranks of the members
  std::uint32_t id_ = 0;
  Recording recording_ = Recording::kAll;
  std::uint64_t sequence_ = 0;
  CallRecord current_;
  int blocked_on_ = 0;  // whose transfer was the last that was not yet done
  std::vector<std::byte> cards_, scratch_;
  std::vector<Transfer> transfers_;
};

}  // namespace drivetrain
