// Where the ranks of a benchmark run and over what they talk: gathered once, equal on all ranks.
#pragma once
#include <string>
#include <vector>

#include "launcher/comm_bench_request.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

struct RankSite {
  std::string host;       // name; blocks of --ranks-per-host are told apart as name/0, name/1
  int host_index = 0;     // hosts are numbered from 0 in the order of their first rank
  std::string interface;  // of the network between hosts; "" when not known
};

struct BenchPlace {
  std::vector<RankSite> sites;  // by rank
  int hosts = 1;
  int processors = 1;     // of rank 0's host
  std::string transport;  // of the communicator
  std::string reason;     // why that one
};

// Collective. host_ranks: world ranks that share this rank's host, as the transports see it.
BenchPlace gather_place(Communicator& world, const std::vector<int>& host_ranks, const BenchRequest& request);

// Whether a host has room for the buffers of `cases` on `ranks_on_host` of all `ranks`, in shared memory where they lie
// there. Throws kPreflight naming what is free, what is needed and the largest --end that fits.
void check_room(const BenchRequest& request, const std::vector<BenchCase>& cases, int ranks, int ranks_on_host);

}  // namespace drivetrain
