// What the rounds of a --vary bench say: a table for terminals (at most 100 columns) and JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/bench/compare.h"
#include "launcher/bench/vary_rounds.h"

namespace drivetrain {

// Of settings[i] against settings[0], the baseline; nothing for those that do not run.
std::vector<std::optional<Comparison>> compare_settings(const std::vector<Setting>& settings);

std::string vary_text(const std::vector<Setting>& settings, int rounds);
// The settings in order: {"change", "fault", "tokens_per_s": {...}, "against_baseline": {...}}.
nlohmann::ordered_json vary_json(const std::vector<Setting>& settings);

}  // namespace drivetrain
