// Lets the ranks of a group fail together: what may throw on one rank alone is attempted, and before anybody goes on all
// ranks learn whether it worked everywhere. Not for collectives: those fail on every rank by themselves.
#pragma once
#include <functional>
#include <optional>

#include "kernels/device.h"
#include "kernels/error.h"
#include "runtime/comm/communicator.h"

namespace drivetrain {

class Agreement {
 public:
  Agreement(Communicator& group, Device& device) : group_(group), device_(device) {}

  // Runs body, unless an earlier one failed here, and keeps what it throws. body must not communicate.
  void attempt(const std::function<void()>& body) noexcept;
  bool failed() const { return failure_.has_value(); }
  // Collective. When any rank failed, throws on all of them the error of the lowest such rank, with its number.
  void settle();

 private:
  std::string broadcast_text(const std::string& text, int root);

  Communicator& group_;
  Device& device_;
  std::optional<Error> failure_;
};

}  // namespace drivetrain
