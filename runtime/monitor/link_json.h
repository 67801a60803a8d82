// Links as JSON: what the monitor writes into a run folder, and what a script says (--set telemetry.links_script=FILE).
#pragma once
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/monitor/link.h"

namespace drivetrain {

// {"links": [{"kind": "pcie", "name": ..., ...}], "pairs": [{"a": ..., "b": ..., "path": "PIX"}]}; fields that are
// unknown or hold their default are left out.
nlohmann::json to_json(const LinkReport& report);
// The reverse. Throws kConfig naming `source` and the field for anything else, unknown fields included.
LinkReport link_report(const nlohmann::json& json, const std::string& source);

// Answers from a JSON text: one report, or {"frames": [report, ...]} of which each inspection takes the next and then
// keeps the last. Throws kConfig naming `source`.
std::unique_ptr<LinkInspector> scripted_links(const std::string& text, const std::string& source);

}  // namespace drivetrain
