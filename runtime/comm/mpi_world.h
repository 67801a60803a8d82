// What one rank knows of the whole job over MPI: who the ranks are, and a channel on which one rank's failure reaches
// all others. Shared by all MPI communicators of the process, beside the HostWorld of its host. MPI itself stays in the
// .cpp.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "runtime/comm/call_record.h"
#include "runtime/comm/host_world.h"
#include "runtime/comm/mpi_session.h"

namespace drivetrain {

class MpiWorld {
 public:
  // Collective over all ranks of the session. `host` is this rank's view of its host; a failure noticed by either
  // reaches the other.
  static std::shared_ptr<MpiWorld> open(std::shared_ptr<MpiSession> session, std::shared_ptr<HostWorld> host);
  MpiWorld(std::shared_ptr<MpiSession> session, std::shared_ptr<HostWorld> host);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  MpiSession& session() const { return *session_; }
  HostWorld& host() const { return *host_; }

  // Takes in failures of other ranks. Cheap enough for a waiting loop; never blocks, never throws.
  void poll() noexcept;
  // The first failure wins; tells every rank, once.
  void fail(ErrorKind kind, const std::string& reason) noexcept;
  // Throws the failure, if there is one.
  void check() const;

  // "rank 2 (host node1, pid 77, stopped)"; the state only of processes on this host.
  std::string describe_rank(int world_rank) const;

  int take_group_number() { return next_group_number_++; }
  // Memory that MPI may still write to after a failed collective; kept until the process ends.
  void bury(std::vector<std::byte> memory);

 private:
  struct Impl;
  void take_failure(ErrorKind kind, const std::string& reason) noexcept;

  std::shared_ptr<MpiSession> session_;
  std::shared_ptr<HostWorld> host_;
  std::unique_ptr<Impl> impl_;
  std::atomic<int> next_group_number_{0};
};

}  // namespace drivetrain
