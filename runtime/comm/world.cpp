#include "runtime/comm/world.h"

#include <algorithm>

#include "runtime/comm/blocking_deadline.h"
#include "runtime/comm/hierarchical_comm.h"
#include "runtime/comm/host_bootstrap.h"
#include "runtime/comm/mpi_comm.h"
#include "runtime/comm/mpi_session.h"
#include "runtime/comm/progress_comm.h"
#include "runtime/comm/self_comm.h"
#include "runtime/comm/world_of_session.h"

namespace drivetrain {
namespace {

int index_on_host(const MpiSession& session) {
  const std::vector<int>& ranks = session.host_ranks();
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), session.rank()) - ranks.begin());
}

// What the first rank of a host prepares for the others; its failure must reach those that wait for its broadcast.
struct Prepared {
  HostTickets tickets;
  char failure[1024] = "";
  ErrorKind kind = ErrorKind::kComm;
};

// Runs prepare(tickets) on the first rank of this host and gives every rank the outcome.
template <class Prepare>
Prepared prepare_on_host(const MpiSession& session, const Prepare& prepare) {
  Prepared prepared;
  if (index_on_host(session) == 0) {
    remove_shm_leftovers();
    try {
      prepare(prepared.tickets);
    } catch (const Error& error) {
      std::string(error.what()).copy(prepared.failure, sizeof prepared.failure - 1);
      prepared.kind = error.kind();
    }
  }
  session.broadcast_on_host(std::as_writable_bytes(std::span(&prepared, 1)));
  return prepared;
}

// The members of this host, in shared memory.
std::unique_ptr<HostCommunicator> open_host(const std::shared_ptr<MpiSession>& session, const HostOptions& options) {
  const auto blocks = make_shm_blocks();
  const std::vector<int>& ranks = session->host_ranks();
  PreparedHost host;
  const Prepared prepared = prepare_on_host(*session, [&](HostTickets& tickets) {
    host = prepare_host(*blocks, static_cast<int>(ranks.size()));
    tickets = host.tickets;
  });
  if (prepared.failure[0] != '\0') throw Error(prepared.kind, prepared.failure);
  return join_host(prepared.tickets, blocks, ranks, index_on_host(*session), options, session);
}

// For ranks that do not share memory for their data: who is on this host and what they called last, still in shared
// memory. Where there is none, each rank knows only itself.
std::shared_ptr<HostWorld> open_board(const std::shared_ptr<MpiSession>& session, HostOptions options) {
  auto blocks = make_shm_blocks();
  std::vector<int> ranks = session->host_ranks();
  int self = index_on_host(*session);
  const std::size_t bytes = world_block_bytes(static_cast<int>(ranks.size()));
  SharedBlock block;
  const Prepared prepared = prepare_on_host(*session, [&](HostTickets& tickets) {
    block = blocks->create(bytes, tickets.world);
    blocks->commit(block, 0, bytes);
  });
  bool shared = prepared.failure[0] == '\0';
  try {
    if (shared) block = blocks->open(prepared.tickets.world, bytes);
  } catch (const Error&) {
    shared = false;
  }
  session->barrier_on_host();
  if (index_on_host(*session) == 0) blocks->seal(prepared.tickets.world);
  if (!shared) {
    blocks = make_heap_blocks();
    BlockTicket ticket;
    ranks = {session->rank()};
    self = 0;
    if (!options.recorder_file.empty())  // each rank of the host its own
      options.recorder_file.replace(options.recorder_file.size() - 4, 4,
                                    "-rank-" + std::to_string(ranks[0]) + ".bin");
    block = blocks->create(world_block_bytes(1), ticket);
  }
  return std::make_shared<HostWorld>(blocks, std::move(block), std::move(ranks), self, options, session);
}

}  // namespace

std::unique_ptr<Communicator> open_world(const CommOptions& options) {
  const ProcessPlace place = process_place();
  if (place.world_size == 1 && options.transport != Transport::kMpi) return make_self_communicator();
  BlockingDeadline deadline("joining the job", options.init_timeout, "comm.init_timeout_s", options.last_words);
  deadline.phase("MPI_Init");
  const auto session = std::make_shared<MpiSession>();
  deadline.phase("the first exchange between the ranks");
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
  HostOptions host_options;
  host_options.timeout = options.timeout;
  host_options.check = options.check;
  host_options.host = session->host_label();
  if (!options.recorder_folder.empty())
    host_options.recorder_file = options.recorder_folder + "/recorder-" + host_options.host + ".bin";
  host_options.job_ranks = session->size();
  // By now every rank of the host has told its cores.
  const auto with_progress = [&](std::unique_ptr<Communicator> world, const HostWorld& host) {
    if (wants_progress(options, host.cores(), host.size()))
      world = std::make_unique<ProgressCommunicator>(std::move(world));
    return world;
  };
  if (options.transport == Transport::kMpi) {
    const auto board = open_board(session, host_options);
    return with_progress(make_mpi_communicator(MpiWorld::open(session, board)), *board);
  }
  auto host = open_host(session, host_options);
  const auto on_host = host->shared_world();
  if (one_host) return with_progress(std::move(host), *on_host);
  const auto job = MpiWorld::open(session, on_host);
  return with_progress(make_group(std::move(host), make_mpi_communicator(job)), *on_host);
}

void abort_world(int code) {
  mpi_abort(code);
}

}  // namespace drivetrain
