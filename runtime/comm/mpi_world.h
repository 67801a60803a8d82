// What one rank knows of the whole job over MPI: who the ranks are, and a channel on which one rank's failure reaches
// all others. Shared by all MPI communicators of the process. MPI itself stays in the .cpp.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "runtime/comm/call_record.h"
#include "runtime/comm/mpi_session.h"

namespace drivetrain {

class MpiWorld {
 public:
  // Collective over all ranks of the session.
  MpiWorld(std::shared_ptr<MpiSession> session, std::chrono::milliseconds timeout);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  MpiSession& session() const { return *session_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Takes in failures of other ranks. Cheap enough for a waiting loop; never blocks, never throws.
  void poll() noexcept;
  // The first failure wins; tells every rank, once.
  void fail(ErrorKind kind, const std::string& reason) noexcept;
  // Throws the failure, if there is one.
  void check() const;
  // Called, by poll(), when a failure arrives from another rank.
  void set_on_failure(std::function<void(ErrorKind, const std::string&)> f) { on_failure_ = std::move(f); }
  // Called while waiting in MPI; may throw.
  void set_on_wait(std::function<void()> f) { on_wait_ = std::move(f); }
  void waiting() const {
    if (on_wait_) on_wait_();
  }

  // "rank 2 (host node1, pid 77, stopped)"; the state only of processes on this host.
  std::string describe_rank(int world_rank) const;

  // Memory that MPI may still write to after a failed collective; kept until the process ends.
  void bury(std::vector<std::byte> memory);

 private:
  struct Impl;
  void take_failure(ErrorKind kind, const std::string& reason) noexcept;

  std::shared_ptr<MpiSession> session_;
  std::chrono::milliseconds timeout_;
  std::unique_ptr<Impl> impl_;
  std::function<void(ErrorKind, const std::string&)> on_failure_;
  std::function<void()> on_wait_;
};

}  // namespace drivetrain
