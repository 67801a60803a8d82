// One number that may be absent, and the table that names the numbers of a sample: files, the Prometheus endpoint and
// readers all walk that table, so a number is added in one place.
#pragma once
#include <optional>

namespace drivetrain {

using Reading = std::optional<double>;

template <class Sample>
struct ReadingField {
  const char* key;   // in monitor-*.jsonl; its metric is drivetrain_<sample>_<key>
  const char* help;  // unit and meaning
  Reading Sample::*value;
};

}  // namespace drivetrain
