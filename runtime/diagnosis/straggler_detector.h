// The online side of judge(): looks at the trailing window every few steps and remembers what one window cannot show: how
// long each rank's own work took when all was well, and how many looks in a row gave the same verdict.
#pragma once
#include <span>
#include <vector>

#include "runtime/diagnosis/straggler.h"

namespace drivetrain {

class StragglerDetector {
 public:
  explicit StragglerDetector(RunFacts facts = {}, DetectorOptions options = {})
      : facts_(std::move(facts)), options_(options) {}

  // The last kOnlineSteps or more steps. Verdicts carry times_seen and the step of the first look that had them; with two
  // ranks, where "slower than the peers" says little, a rank that is also slower than it was is a surer verdict.
  // Throws kData like judge().
  Diagnosis observe(const Window& last_steps, std::span<const DeviceFacts> devices = {});

 private:
  void remember(const Window& window, const Diagnosis& d);
  void compare_with_before(const Window& window, Verdict& v) const;

  RunFacts facts_;
  DetectorOptions options_;
  // A look without a verdict.
  struct HealthyLook {
    std::int64_t last_step = 0;
    std::vector<double> own_ms;  // per rank, median own work
  };

  std::vector<Verdict> before_;       // of the last look
  std::vector<HealthyLook> healthy_;  // the newest kLooks, oldest first
  static constexpr std::size_t kLooks = 32;
  double first_healthy_step_ms_ = 0;  // median step of the first such window
};

}  // namespace drivetrain
