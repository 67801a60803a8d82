// Counters of the kernel turned into rates.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "runtime/monitor/reading.h"

namespace drivetrain {

// Remembers the last value of each counter by name. A counter that went back (a reset, a device that was replaced) gives
// no rate.
class Counters {
 public:
  // `now_s` of any steady clock, the same for all counters of one sample.
  void begin(double now_s) {
    elapsed_s_ = last_s_ ? now_s - *last_s_ : 0;
    last_s_ = now_s;
  }
  // Growth since the sample before; none the first time.
  Reading growth(const std::string& name, Reading value) {
    if (!value) return std::nullopt;
    const auto [entry, first] = values_.try_emplace(name, *value);
    const double grown = *value - entry->second;
    entry->second = *value;
    if (first || grown < 0) return std::nullopt;
    return grown;
  }
  Reading per_second(const std::string& name, Reading value) {
    const Reading grown = growth(name, value);
    if (!grown || elapsed_s_ <= 0) return std::nullopt;
    return *grown / elapsed_s_;
  }

 private:
  double elapsed_s_ = 0;
  Reading last_s_;
  std::map<std::string, double> values_;
};

// part / whole in percent; none when either is absent or nothing passed.
inline Reading percent(Reading part, Reading whole) {
  if (!part || !whole || *whole <= 0) return std::nullopt;
  return 100 * *part / *whole;
}

}  // namespace drivetrain
