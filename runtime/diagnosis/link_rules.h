// Whether a link between two ranks is as fast as it should be: against its own start-up calibration, against what its
// kind gives, and against its state. Bandwidths are of the transfer alone, without waiting, in 1e9 bytes a second and
// direction.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace drivetrain {

enum class LinkMedium { kNvlink, kPcie, kSharedMemory, kTcp };
const char* name(LinkMedium medium);

// Zero or absent: unknown.
struct LinkFacts {
  std::string a = {}, b = {};  // "rank 2", "GPU 2", a host
  LinkMedium medium = LinkMedium::kPcie;
  double measured_gbps = 0;     // while training
  double calibrated_gbps = 0;   // at start-up, same message size
  bool under_load = true;       // the state below was read while the link worked; idle ones save power
  int lanes_up = 0, lanes = 0;  // NVLink
  double lane_gbps = 0;         // NVLink, of one lane
  int gen = 0, max_gen = 0, width = 0, max_width = 0;  // PCIe
  std::optional<bool> peer_to_peer = {};               // devices read each other's memory; no: through the host
  bool shared_uplink = false;                          // both devices hang on one switch below the host
  double nominal_gbps = 0;                             // TCP: speed of the network card
  double memory_gbps = 0;                              // shared memory: copy bandwidth of the host
  long long errors = 0;                                // CRC, replays, recoveries since the last look
};

// What the link gives when nothing is wrong with it; 0 when too little is known. `healthy`: with all lanes, full width
// and generation; else as it is trained now.
double expected_gbps(const LinkFacts& link, bool healthy);

struct LinkFinding {
  std::string a, b, sentence, action;
  double measured_gbps = 0, expected_gbps = 0;
};
// Slowest against its expectation first; empty: all links are as they should be.
std::vector<LinkFinding> link_findings(std::span<const LinkFacts> links);

}  // namespace drivetrain
