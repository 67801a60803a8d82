// What one rank knows of the whole job over MPI: who the ranks are, and a channel of its own on which failures travel and
// ranks of other hosts are asked how they are. Shared by all MPI communicators of the process, beside the HostWorld of its
// host. MPI itself stays in the .cpp.
//
// A watch thread looks at the channel and at the neighbours on the host every quarter of a second, so that a rank answers,
// and learns of a death, while it computes; its next collective then throws.
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
#include "runtime/comm/watch.h"

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

  // Takes in failures of other ranks and answers their questions. Cheap enough for a waiting loop; never blocks, never
  // throws. Any thread.
  void poll() noexcept;
  // The first failure wins; tells every rank, once. Any thread.
  void fail(ErrorKind kind, const std::string& reason) noexcept;
  // Throws the failure, if there is one.
  void check() const;
  // How every rank of the job is, by world rank. Asks the other hosts and waits for them, two seconds at most; who has
  // nobody to answer for it is kSilent.
  std::vector<RankReport> survey();

  int take_group_number() { return next_group_number_++; }
  // Memory that MPI may still write to after a failed collective; kept until the process ends.
  void bury(std::vector<std::byte> memory);

 private:
  struct Impl;
  void look() noexcept;
  void take_failure(ErrorKind kind, const std::string& reason) noexcept;
  void answer(int to, const std::vector<std::byte>& question);
  void take_answer(const std::vector<std::byte>& message);

  std::shared_ptr<MpiSession> session_;
  std::shared_ptr<HostWorld> host_;
  std::unique_ptr<Impl> impl_;
  std::atomic<int> next_group_number_{0};
  std::unique_ptr<Watch> watch_;
};

}  // namespace drivetrain
