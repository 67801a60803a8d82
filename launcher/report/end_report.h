// report.html in the run folder when a job has ended, however it ended.
#pragma once
#include <filesystem>

namespace drivetrain {

// Writes RUN/report.html and logs where it is, with its first line. Never throws: a report must not change how a job
// ends. Says nothing when no step was recorded.
void write_end_report(const std::filesystem::path& run_folder) noexcept;

}  // namespace drivetrain
