// The one door to the log: rank 0 speaks from info up, other ranks from warn up, on stderr. Metrics are data, not log
// lines, and do not come here; kernels/ and models/ never log.
#pragma once
#include <string>

namespace drivetrain {

struct LogPlace {
  int world_rank = 0, world_size = 1;
  int dp_rank = -1, tp_rank = -1;  // -1: not known yet, left out
  std::string host;
  bool quiet = false;  // warnings only, on rank 0 too
};

// Sets level and prefix, "[r3 dp1 tp1 host] " when there is more than one rank. Call again when the mesh is known.
void init_logging(const LogPlace& place);

void log_info(const std::string& message);
void log_warn(const std::string& message);
void log_error(const std::string& message);
void log_critical(const std::string& message);

// The name of this machine up to its first dot.
std::string short_host_name();

}  // namespace drivetrain
