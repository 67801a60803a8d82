// Which links between ranks stand out: each is compared with the others of its kind, robustly, and named in a sentence.
// Pure: figures in, words out.
#pragma once
#include <string>
#include <vector>

#include "launcher/comm_bench_place.h"

namespace drivetrain {

// Between ranks a < b, both ways together.
struct LinkFigure {
  int a = 0, b = 0;
  std::string kind;        // "shm", "threads", "mpi" or a network interface; only equal kinds are compared
  double latency_s = 0;    // half a round trip of a small message
  double bytes_per_s = 0;  // of a large message
};

// What a link between these two places is called. `transport` is that of the communicator.
std::string link_kind(const RankSite& a, const RankSite& b, const std::string& transport);

// Between hosts, all pairs of ranks on the same two hosts count as one link. A host (within a host: a rank) all of whose
// links are slower than those among the others comes first, then single links. A link stands out when it is more than
// 1.5 times worse than the median of its kind, in bandwidth or latency, and by more than the kind's own spread (median
// absolute deviation of the logarithms). One sentence each, the worst first; at least one sentence per kind.
std::vector<std::string> judge_links(const std::vector<LinkFigure>& links, const std::vector<RankSite>& sites);

}  // namespace drivetrain
