#include "runtime/comm/mpi_session.h"

#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/comm/mpi_check.h"
#include "runtime/comm/process_info.h"

namespace drivetrain {

struct MpiSession::Impl {
  int rank = 0, size = 1;
  int exceptions_at_start = std::uncaught_exceptions();
  MPI_Comm host = MPI_COMM_NULL;
  std::vector<int> host_ranks;
  std::string host_label = host_name();
};

MpiSession::MpiSession(int ranks_per_host) : impl_(std::make_unique<Impl>()) {
  int running = 0, over = 0;
  check_mpi(MPI_Initialized(&running), "MPI_Initialized");
  check_mpi(MPI_Finalized(&over), "MPI_Finalized");
  if (running || over)
    throw Error(ErrorKind::kComm, "MPI was already started in this process: open the world once per process");
  // Two threads may use two communicators at once, and a watchdog may abort.
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_MULTIPLE)
    throw Error(ErrorKind::kComm, "this MPI library was built without MPI_THREAD_MULTIPLE, which drivetrain needs");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &impl_->rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &impl_->size), "MPI_Comm_size");
  if (ranks_per_host > 0) impl_->host_label += "-" + std::to_string(impl_->rank / ranks_per_host);
  if (ranks_per_host > 0)
    check_mpi(MPI_Comm_split(MPI_COMM_WORLD, impl_->rank / ranks_per_host, 0, &impl_->host), "MPI_Comm_split");
  else
    check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &impl_->host),
              "MPI_Comm_split_type");
  int on_host = 0;
  check_mpi(MPI_Comm_size(impl_->host, &on_host), "MPI_Comm_size");
  impl_->host_ranks.resize(static_cast<std::size_t>(on_host));
  check_mpi(MPI_Allgather(&impl_->rank, 1, MPI_INT, impl_->host_ranks.data(), 1, MPI_INT, impl_->host),
            "MPI_Allgather");
}

MpiSession::~MpiSession() {
  const bool unwinding = std::uncaught_exceptions() > impl_->exceptions_at_start;
  if (spoiled_.load() || unwinding) return;
  MPI_Comm_free(&impl_->host);
  MPI_Finalize();
}

int MpiSession::rank() const {
  return impl_->rank;
}

int MpiSession::size() const {
  return impl_->size;
}

const std::string& MpiSession::host_label() const {
  return impl_->host_label;
}

const std::vector<int>& MpiSession::host_ranks() const {
  return impl_->host_ranks;
}

void MpiSession::broadcast_on_host(std::span<std::byte> bytes) const {
  check_mpi(MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, impl_->host), "MPI_Bcast");
}

void MpiSession::barrier_on_host() const {
  check_mpi(MPI_Barrier(impl_->host), "MPI_Barrier");
}

void mpi_abort(int code) {
  int running = 0, over = 0;
  if (MPI_Initialized(&running) == MPI_SUCCESS && running && MPI_Finalized(&over) == MPI_SUCCESS && !over)
    MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace drivetrain
