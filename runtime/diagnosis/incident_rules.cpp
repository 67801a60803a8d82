#include "runtime/diagnosis/incident_rules.h"

#include <algorithm>

#include "runtime/diagnosis/incident_tables.h"

namespace drivetrain {

std::span<const IncidentRule> incident_rules() {
  static const std::vector<IncidentRule> all = [] {
    std::vector<IncidentRule> rules;
    for (const auto half : {incidents_of_the_job(), incidents_of_the_machine()})
      rules.insert(rules.end(), half.begin(), half.end());
    std::sort(rules.begin(), rules.end(),
              [](const IncidentRule& a, const IncidentRule& b) { return a.number < b.number; });
    return rules;
  }();
  return all;
}

std::vector<IncidentMatch> matching_incidents(const IncidentFacts& facts) {
  std::vector<IncidentMatch> found;
  for (const IncidentRule& rule : incident_rules())
    if (auto sentence = rule.match(facts))
      found.push_back({rule.number, rule.source, std::move(*sentence), rule.action});
  return found;
}

}  // namespace drivetrain
