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
  std::vector<Verdict> before_;       // of the last look
  std::vector<double> healthy_ms_;    // per rank, own work in the last window without a verdict
  std::int64_t healthy_until_ = -1;   // its last step
  double first_healthy_step_ms_ = 0;  // median step of the first such window
};

}  // namespace drivetrain
