// A memory plan in words and numbers. Pure.
#pragma once
#include <string>

#include "launcher/memory_plan.h"

namespace drivetrain {

// "1.24 GB", "823 MB", "12 KB": powers of ten.
std::string bytes_text(std::size_t bytes);
bool fits(const MemoryPlan& plan, const HostMemory& memory, int ranks_per_host);
// The class table alone, one line a class.
std::string memory_table(const MemoryPlan& plan);
std::string plan_text(const RunSetup& setup, const MemoryPlan& plan, const HostMemory& memory, int ranks_per_host);

}  // namespace drivetrain
