// MPI in this process, from MPI_Init_thread to MPI_Finalize, and what the host transport needs of it: who shares a
// host, and a broadcast to start with. No MPI type leaves the mpi_* files.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/comm/job_session.h"

namespace drivetrain {

class MpiSession final : public JobSession {
 public:
  // Throws kComm when MPI cannot start here. ranks_per_host > 0 treats blocks of so many ranks as hosts of their own,
  // which lets one machine stand for several; otherwise MPI says who shares a host.
  explicit MpiSession(int ranks_per_host = 0);
  // MPI_Finalize waits for all peers, so it is only called when nothing went wrong: the session was not spoiled and no
  // exception is on its way.
  ~MpiSession() override;
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  int rank() const;
  int size() const;
  void spoil() noexcept override { spoiled_.store(true); }
  bool spoiled() const noexcept { return spoiled_.load(); }

  // The name of this host in messages and files: the machine's, numbered where blocks of ranks stand for hosts.
  const std::string& host_label() const;
  // World ranks of the processes on this host, in order, this one among them.
  const std::vector<int>& host_ranks() const;
  // From the first of the host's ranks; every one of them calls it.
  void broadcast_on_host(std::span<std::byte> bytes) const;
  void barrier_on_host() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::atomic<bool> spoiled_{false};
};

// MPI_Abort with this code where MPI runs, otherwise an exit that runs no destructors.
[[noreturn]] void mpi_abort(int code);

}  // namespace drivetrain
