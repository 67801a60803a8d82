#include "runtime/comm/world.h"

#include <algorithm>

#include "runtime/comm/hierarchical_comm.h"
#include "runtime/comm/host_bootstrap.h"
#include "runtime/comm/mpi_comm.h"
#include "runtime/comm/mpi_session.h"
#include "runtime/comm/self_comm.h"
#include "runtime/comm/world_of_session.h"

namespace drivetrain {
namespace {

// The members of this host, in shared memory.
std::unique_ptr<HostCommunicator> open_host(const std::shared_ptr<MpiSession>& session, const HostOptions& options) {
  const std::vector<int>& ranks = session->host_ranks();
  const auto self = static_cast<int>(std::find(ranks.begin(), ranks.end(), session->rank()) - ranks.begin());
  const auto blocks = make_shm_blocks();
  PreparedHost prepared;
  // The leader's failure must reach the members that wait for its broadcast.
  struct {
    HostTickets tickets;
    char failure[1024] = "";
    ErrorKind kind = ErrorKind::kComm;
  } message;
  if (self == 0) {
    remove_shm_leftovers();
    try {
      prepared = prepare_host(*blocks, static_cast<int>(ranks.size()));
      message.tickets = prepared.tickets;
    } catch (const Error& error) {
      std::string(error.what()).copy(message.failure, sizeof message.failure - 1);
      message.kind = error.kind();
    }
  }
  session->broadcast_on_host(std::as_writable_bytes(std::span(&message, 1)));
  if (message.failure[0] != '\0') throw Error(message.kind, message.failure);
  return join_host(message.tickets, blocks, ranks, self, options, session);
}

// A failure on one host wakes the others, whichever way it is noticed.
void connect_failures(HostCommunicator& host, const std::shared_ptr<MpiWorld>& job) {
  const std::shared_ptr<HostWorld> on_host = host.shared_world();
  on_host->set_on_failure([job](ErrorKind kind, const std::string& reason) { job->fail(kind, reason); });
  on_host->set_on_wait([job] { job->poll(); });
  const std::weak_ptr<HostWorld> weak = on_host;
  job->set_on_failure([weak](ErrorKind kind, const std::string& reason) {
    if (const auto world = weak.lock()) world->fail(kind, reason);
  });
  job->set_on_wait([weak] {
    if (const auto world = weak.lock()) world->check();
  });
}

}  // namespace

std::unique_ptr<Communicator> open_world(const CommOptions& options) {
  const ProcessPlace place = process_place();
  if (place.world_size == 1 && options.transport != Transport::kMpi) return make_self_communicator();
  const auto session = std::make_shared<MpiSession>();
  if (session->rank() != place.world_rank || session->size() != place.world_size)
    throw Error(ErrorKind::kComm, "the launcher started rank " + std::to_string(place.world_rank) + " of " +
                                      std::to_string(place.world_size) + ", but MPI says rank " +
                                      std::to_string(session->rank()) + " of " + std::to_string(session->size()) +
                                      ": mpirun and the MPI library belong to different installations");
  return open_world_of(session, options);
}

std::unique_ptr<Communicator> open_world_of(std::shared_ptr<MpiSession> session, const CommOptions& options) {
  const bool one_host = static_cast<int>(session->host_ranks().size()) == session->size();
  if (options.transport == Transport::kShm && !one_host)
    throw Error(ErrorKind::kConfig, "comm.transport: shm needs all ranks on one host, but rank " +
                                        std::to_string(session->rank()) + " shares its host with " +
                                        std::to_string(session->host_ranks().size()) + " of " +
                                        std::to_string(session->size()) + " ranks; use auto, host or mpi");
  if (options.transport == Transport::kMpi)
    return make_mpi_communicator(std::make_shared<MpiWorld>(session, options.timeout));
  HostOptions host_options;
  host_options.timeout = options.timeout;
  host_options.job_ranks = session->size();
  auto host = open_host(session, host_options);
  if (one_host) return host;
  const auto job = std::make_shared<MpiWorld>(session, options.timeout);
  connect_failures(*host, job);
  return make_group(std::move(host), make_mpi_communicator(job));
}

void abort_world(int code) {
  mpi_abort(code);
}

}  // namespace drivetrain
