// The pictures of a report, as SVG. Every one is bounded in size for any number of steps and ranks; each is empty when
// there is nothing to draw.
#pragma once
#include <string>

#include "launcher/report/run_report.h"

namespace drivetrain {

constexpr double kChartWidth = 1080;
constexpr std::size_t kMostBars = 32;   // ranks drawn one by one; of more, those that caused or suffered most
constexpr std::size_t kMostRows = 64;   // of the heat map; of more ranks, neighbours share a row
constexpr std::size_t kMostLanes = 16;  // ranks of the timeline

std::string class_bars(const RunReport& report);    // where each rank's step goes
std::string lateness_map(const RunReport& report);  // rank x step
std::string waterfall_chart(const RunReport& report);
std::string waiting_matrix(const RunReport& report);  // who waits for whom
std::string loss_chart(const RunReport& report);
std::string mfu_chart(const RunReport& report);  // tokens a second where there is no MFU
std::string step_timeline(const RunReport& report);

}  // namespace drivetrain
