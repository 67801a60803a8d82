#include "launcher/bench/vary_report.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

#include "runtime/diagnosis/robust_stats.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  std::array<char, 512> line{};
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(line.data(), line.size(), pattern, values);
  va_end(values);
  return line.data();
}

std::vector<double> rates_of(const Setting& setting) {
  std::vector<double> rates;
  for (const Setting::Figures& f : setting.rounds) rates.push_back(f.tokens_per_s);
  return rates;
}

std::string cut(const std::string& text, std::size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

}  // namespace

std::vector<std::optional<Comparison>> compare_settings(const std::vector<Setting>& settings) {
  const auto comparable = [&](const Setting& s) { return s.change && s.fault.empty() && s.rounds.size() >= 2; };
  const auto count = static_cast<std::size_t>(std::count_if(settings.begin(), settings.end(), comparable));
  std::vector<std::optional<Comparison>> result;
  for (const Setting& setting : settings) {
    result.emplace_back();
    if (comparable(setting)) result.back() = compare_pairs(rates_of(setting), rates_of(settings.front()), count);
  }
  return result;
}

std::string vary_text(const std::vector<Setting>& settings, int rounds) {
  const auto comparisons = compare_settings(settings);
  std::string text =
      format("\n%-32s %10s %8s %26s %10s\n", "one change at a time", "tokens/s", "spread", "change", "detectable");
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    const std::string label = cut(setting.label(), 30);
    if (!setting.fault.empty()) {
      text += format("  %-30s %s\n", label.c_str(), cut("does not run: " + setting.fault, 67).c_str());
      continue;
    }
    const std::vector<double> rates = rates_of(setting);
    const double middle = median(rates);
    const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
    const double spread = (*most - *least) / 2 / middle;
    text += format("  %-30s %10.0f %8s", label.c_str(), middle, ("+-" + in_percent(spread)).c_str());
    if (const auto& c = comparisons[i])
      text += format(
          " %26s %10s  %s",
          (fixed(100 * c->change, 1) + " % (" + fixed(100 * c->low, 1) + " to " + fixed(100 * c->high, 1) + ")")
              .c_str(),
          in_percent(c->detectable).c_str(), name(c->verdict));
    text += "\n";
  }
  return text + "medians of " + std::to_string(rounds) +
         " rounds, all settings in turn; spread: half their range; change: paired by round,\n"
         "all rows hold in 99 of 100 benches; detectable: a change that 95 of 100 benches would find\n";
}

nlohmann::ordered_json vary_json(const std::vector<Setting>& settings) {
  const auto comparisons = compare_settings(settings);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const Setting& setting = settings[i];
    nlohmann::ordered_json row = {{"change", nullptr}, {"fault", nullptr}, {"rounds", nlohmann::json::array()}};
    if (setting.change) row["change"] = {{"key", setting.change->key}, {"value", setting.change->value}};
    if (!setting.fault.empty()) row["fault"] = setting.fault;
    for (const Setting::Figures& f : setting.rounds)
      row["rounds"].push_back({{"tokens_per_s", f.tokens_per_s},
                               {"step_ms", f.step_ms},
                               {"mfu", f.mfu ? nlohmann::ordered_json(*f.mfu) : nlohmann::ordered_json(nullptr)}});
    row["tokens_per_s"] = nullptr;
    if (!setting.rounds.empty()) row["tokens_per_s"] = median(rates_of(setting));
    row["against_baseline"] = nullptr;
    if (const auto& c = comparisons[i])
      row["against_baseline"] = {{"change", c->change},
                                 {"low", c->low},
                                 {"high", c->high},
                                 {"detectable", c->detectable},
                                 {"verdict", name(c->verdict)}};
    all.push_back(row);
  }
  return all;
}

}  // namespace drivetrain
