#include "runtime/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

namespace drivetrain {
namespace {

std::string prefix(const LogPlace& place) {
  if (place.world_size <= 1) return "";
  std::string text = "[r" + std::to_string(place.world_rank);
  if (place.dp_rank >= 0) text += " dp" + std::to_string(place.dp_rank);
  if (place.tp_rank >= 0) text += " tp" + std::to_string(place.tp_rank);
  if (!place.host.empty()) text += " " + place.host;
  return text + "] ";
}

std::string pattern_text(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '%' ? std::string("%%") : std::string(1, c);
  return safe;
}

}  // namespace

void init_logging(const LogPlace& place) {
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  auto logger = std::make_shared<spdlog::logger>("drivetrain", sink);
  logger->set_pattern("%H:%M:%S " + pattern_text(prefix(place)) + "%^%l%$: %v");
  logger->set_level(place.world_rank == 0 && !place.quiet ? spdlog::level::info : spdlog::level::warn);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(logger);
}

void log_info(const std::string& message) {
  spdlog::info("{}", message);
}
void log_warn(const std::string& message) {
  spdlog::warn("{}", message);
}
void log_error(const std::string& message) {
  spdlog::error("{}", message);
}
void log_critical(const std::string& message) {
  spdlog::critical("{}", message);
}

std::string short_host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return "localhost";
  const std::string full = name;
  return full.substr(0, full.find('.'));
}

}  // namespace drivetrain
