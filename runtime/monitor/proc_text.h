// The formats that files of /proc share (proc(5), Documentation/filesystems/proc.rst).
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/monitor/reading.h"

namespace drivetrain {

// The rest of the first line that begins with the word `key`, a colon behind it or not; "" when there is none.
std::string_view proc_line(std::string_view text, std::string_view key);
// A word of such a line as a number; none for other text and beyond the end.
Reading proc_word(const std::vector<std::string_view>& words, std::size_t n);
// The number behind "key:" or "key " at the start of a line, times 1024 where the line says kB.
Reading proc_value(std::string_view text, std::string_view key);
// "0-3,8" -> {0, 1, 2, 3, 8}; empty for anything else.
std::vector<int> cpu_list(std::string_view text);

}  // namespace drivetrain
