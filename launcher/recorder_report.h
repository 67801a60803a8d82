// What flight recorder files tell: the calls of every rank, the first call in which the ranks of a group differ, and who
// is behind. For `drivetrain comm recorder`.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/comm/flight_file.h"

namespace drivetrain {

// Sentences, most important first; one that says so when there is nothing to say. Files of several hosts of one job are
// read together.
std::vector<std::string> recorder_verdict(const std::vector<FlightFile>& files);

// The verdict, then the newest `last` calls of every rank, times relative to the writing of the file.
std::string recorder_text(const std::vector<FlightFile>& files, std::size_t last);
// The same as JSON, times in nanoseconds of the host's steady clock.
std::string recorder_json(const std::vector<FlightFile>& files, std::size_t last);

}  // namespace drivetrain
