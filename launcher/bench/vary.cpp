#include "launcher/bench/vary.h"

#include <algorithm>
#include <array>

#include "kernels/error.h"
#include "runtime/config/key_table.h"
#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

[[noreturn]] void refuse(const std::string& word, const std::string& why) {
  throw Error(ErrorKind::kUsage, "--vary " + word + ": " + why);
}

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && c == ',' && depth == 0) {
      values.emplace_back();
      continue;
    }
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '[' || c == '{')
      ++depth;
    else if (c == ']' || c == '}')
      --depth;
    values.back() += c;
  }
  return values;
}

// With the last part of a known key, that key is meant: "micro" is batch.micro.
std::string nearest_key(const std::string& key) {
  std::vector<std::string> known;
  const std::string last = key.substr(key.rfind('.') + 1);
  for (const KeyRow& row : key_table()) {
    known.emplace_back(row.key);
    if (known.back().substr(known.back().rfind('.') + 1) == last) return known.back();
  }
  return nearest_word(key, known);
}

// Keys without an effect on the speed of a step, or that bench_overrides() sets.
bool set_by_bench(const std::string& key) {
  constexpr std::array kSections{"run.", "checkpoint.", "eval.", "sample.", "schedule."};
  constexpr std::array kKeys{"steps",
                             "epochs",
                             "model.init",
                             "optimizer.lr",
                             "data.eval",
                             "telemetry.peak_tflops",
                             "telemetry.progress",
                             "telemetry.prometheus",
                             "telemetry.tensorboard"};
  return std::any_of(kSections.begin(), kSections.end(), [&](const char* s) { return key.starts_with(s); }) ||
         std::any_of(kKeys.begin(), kKeys.end(), [&](const char* k) { return key == k; });
}

bool needs_real_data(const std::string& key) {
  constexpr std::array kOfAllData{"data.seq_len", "data.workers", "data.shuffle"};
  return key.starts_with("data.") &&
         std::none_of(kOfAllData.begin(), kOfAllData.end(), [&](const char* k) { return key == k; });
}

}  // namespace

std::vector<ConfigOverride> parse_vary(const std::vector<std::string>& words, bool real_data) {
  std::vector<ConfigOverride> changes;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size())
      refuse(word, "wants KEY=VALUE,VALUE,..., as in batch.micro=4,8");
    const std::string key = word.substr(0, equals);
    if (!find_key(key)) {
      const std::string near = nearest_key(key);
      refuse(word, "unknown key '" + key + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?") +
                       " (docs/config.md lists all)");
    }
    if (set_by_bench(key)) refuse(word, "bench sets " + key + " itself, or no step depends on it");
    if (!real_data && needs_real_data(key))
      refuse(word, "made-up data do not depend on " + key + "; add --real-data");
    for (const std::string& value : split_values(word.substr(equals + 1))) {
      if (value.empty()) refuse(word, "has an empty value between its commas");
      const auto same = [&](const ConfigOverride& c) { return c.key == key && c.value == value; };
      if (std::any_of(changes.begin(), changes.end(), same)) refuse(word, key + "=" + value + " is there twice");
      changes.push_back({key, value});
    }
  }
  return changes;
}

}  // namespace drivetrain
