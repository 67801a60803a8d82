#include "runtime/comm/world.h"

#include "runtime/comm/host_bootstrap.h"
#include "runtime/comm/mpi_session.h"
#include "runtime/comm/self_comm.h"

namespace drivetrain {
namespace {

std::unique_ptr<Communicator> open_host(const std::shared_ptr<MpiSession>& session, const HostOptions& options) {
  const std::vector<int>& ranks = session->host_ranks();
  int self = 0;
  while (ranks[static_cast<std::size_t>(self)] != session->rank()) ++self;
  const auto blocks = make_shm_blocks();
  // The leader's failure must reach the members that wait for its broadcast.
  PreparedHost prepared;
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
  HostOptions host_options;
  host_options.timeout = options.timeout;
  const bool one_host = static_cast<int>(session->host_ranks().size()) == session->size();
  if (!one_host) throw Error(ErrorKind::kComm, "ranks on several hosts need the MPI transport");
  return open_host(session, host_options);
}

void abort_world(int code) {
  mpi_abort(code);
}

}  // namespace drivetrain
