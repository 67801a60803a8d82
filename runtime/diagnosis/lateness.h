// How much later than its peers each rank was, step by step, and with what kind of local work: the numbers that the
// detector tests and the replay changes. Waiting and transfers are left out: they are what lateness does to others.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "runtime/diagnosis/window.h"

namespace drivetrain {

enum class Signal : std::uint8_t {
  kData,        // waiting for the loader
  kCopy,        // host to device
  kSlow,        // compute beyond what the peers need for the same work
  kLoad,        // compute for more work than the mean, at everybody's speed
  kHost,        // compute phases without a running operator
  kCheckpoint,  // saving
  kEval,
  kOther,
  kContention,  // ready to run, but others had the core; part of the kinds above
  kStopped,     // neither running nor ready, where nothing blocks by design; part of the kinds above
  kTotal        // all of it
};
constexpr std::size_t kSignals = 11;

// All values in milliseconds unless said otherwise; `step` is the index in the window.
class Lateness {
 public:
  // Throws kData like check().
  explicit Lateness(const Window& window);

  int ranks() const { return ranks_; }
  std::size_t steps() const { return steps_; }
  double wall(std::size_t step) const { return wall_[step]; }  // mean over ranks
  // Time of this rank in the class(es) of the signal. kSlow and kLoad: the compute classes. kContention and kStopped: 0
  // where rows hold no processor time.
  double own(int rank, Signal signal, std::size_t step) const { return own_[at(rank, signal) + step]; }
  std::span<const double> own(int rank, Signal signal) const { return {own_.data() + at(rank, signal), steps_}; }
  // Own time minus that of the median peer (of two ranks: of the other one); negative: earlier than the peers.
  std::span<const double> excess(int rank, Signal signal) const {
    return {excess_.data() + at(rank, signal), steps_};
  }
  // Work of forward and backward over the mean of the ranks in this step; 1 where the rows do not say.
  double load(int rank, std::size_t step) const { return load_[static_cast<std::size_t>(rank) * steps_ + step]; }
  // Compute of forward and backward alone, without the optimizer.
  double passes(int rank, std::size_t step) const { return passes_[static_cast<std::size_t>(rank) * steps_ + step]; }
  double optimizer(int rank, std::size_t step) const { return own(rank, Signal::kSlow, step) - passes(rank, step); }

 private:
  std::size_t at(int rank, Signal signal) const {
    return (static_cast<std::size_t>(rank) * kSignals + static_cast<std::size_t>(signal)) * steps_;
  }
  void measure_load(const Window& window);
  void measure_absence(const Window& window);
  void compare(std::size_t step);

  int ranks_;
  std::size_t steps_;
  std::vector<double> own_, excess_, load_, passes_, wall_;
};

}  // namespace drivetrain
