#include "launcher/bench/vary_rounds.h"

#include <numeric>

#include "kernels/error.h"

namespace drivetrain {

std::string Setting::label() const {
  return change ? change->key + "=" + change->value : "baseline";
}

void measure_rounds(std::vector<Setting>& settings, int rounds, const MeasureSetting& measure) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      Setting& setting = settings[round % 2 == 0 ? i : settings.size() - 1 - i];
      if (!setting.fault.empty()) continue;
      const Measured measured = measure(setting, round);
      if (measured.figures) {
        setting.rounds.push_back(*measured.figures);
        continue;
      }
      setting.fault = measured.fault;
      if (!setting.change) throw Error(ErrorKind::kUsage, "the baseline does not run: " + setting.fault);
    }
  }
}

}  // namespace drivetrain
