// Calls of NVML that may have no answer.
#pragma once
#include <optional>

#include "runtime/monitor/nvml_abi.h"

namespace drivetrain::nvml {

// The value that `function` writes through its last argument; none when the driver lacks the function or it fails.
template <class T, class... Formal, class... Given>
std::optional<T> ask(int (*function)(Formal...), Given... given) {
  T value{};
  if (!function || function(given..., &value) != kSuccess) return std::nullopt;
  return value;
}

// Likewise, as a number times `scale`.
template <class T, class... Formal, class... Given>
std::optional<double> number(double scale, int (*function)(Formal...), Given... given) {
  const auto value = ask<T>(function, given...);
  if (!value) return std::nullopt;
  return static_cast<double>(*value) * scale;
}

}  // namespace drivetrain::nvml
