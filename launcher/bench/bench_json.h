// A measurement for programs. docs/bench.md lists the keys, which do not change within a schema version.
#pragma once
#include <nlohmann/json.hpp>

#include "launcher/bench/bench_report.h"

namespace drivetrain {

constexpr const char* kBenchSchema = "drivetrain.bench/1";
nlohmann::ordered_json bench_json(const StepBench& bench, const StepBenchReport& report);

// One object on standard output for "-", else into the file. Throws kIo naming it.
void write_bench_json(const nlohmann::ordered_json& json, const std::string& file);

}  // namespace drivetrain
