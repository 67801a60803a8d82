// Measures settings in turn, round by round, each measurement a job of its own: what one leaves behind, or breaks, is no
// business of the next.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace drivetrain {

struct Setting {
  std::optional<ConfigOverride> change = {};  // none: the baseline
  std::string fault = {};                     // why it does not run; empty: it does
  struct Figures {
    double tokens_per_s = 0, step_ms = 0;  // medians over the timed steps
    std::optional<double> mfu;
  };
  std::vector<Figures> rounds = {};
  std::string label() const;  // "baseline", "batch.micro=8"
};

// What one job came to: figures, or why there are none.
struct Measured {
  std::optional<Setting::Figures> figures;
  std::string fault;
};
using MeasureSetting = std::function<Measured(const Setting&, int round)>;

// The baseline first in `settings`. Every other round runs backwards, so that drift in one direction touches all alike.
// A setting that fails gets its fault and is left out from there on. Throws kUsage when the baseline fails.
void measure_rounds(std::vector<Setting>& settings, int rounds, const MeasureSetting& measure);

}  // namespace drivetrain
