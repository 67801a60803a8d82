// Where the Prometheus endpoint listens, as telemetry.prometheus says it.
#pragma once
#include <optional>
#include <string>

namespace drivetrain {

struct ListenAddress {
  std::string host;  // "127.0.0.1", "0.0.0.0", "[::1]"
  int port = 0;      // 0: a free one
};

// "9400" (loopback), "0.0.0.0:9400", "[::1]:9400". Nothing for anything else.
std::optional<ListenAddress> listen_address(const std::string& text);

}  // namespace drivetrain
