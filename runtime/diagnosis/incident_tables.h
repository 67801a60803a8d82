// The two halves of the table of incidents.
#pragma once
#include <span>

#include "runtime/diagnosis/incident_rules.h"

namespace drivetrain {

std::span<const IncidentRule> incidents_of_the_job();      // what ranks do: data, work, code, checkpoints
std::span<const IncidentRule> incidents_of_the_machine();  // what they run on: links, heat, cores, memory

}  // namespace drivetrain
