#include "runtime/telemetry/listen_address.h"

#include <arpa/inet.h>

#include <charconv>

namespace drivetrain {
namespace {

bool is_address(const std::string& host) {
  char binary[sizeof(in6_addr)];
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), binary) == 1;
  return inet_pton(AF_INET, host.c_str(), binary) == 1;
}

}  // namespace

std::optional<ListenAddress> listen_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  ListenAddress address{colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon), 0};
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const auto [end, status] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool number = status == std::errc() && end == port.data() + port.size();
  if (!number || address.port < 0 || address.port > 65535 || !is_address(address.host)) return std::nullopt;
  return address;
}

}  // namespace drivetrain
