// Lines of bounded width.
#pragma once
#include <cstddef>
#include <string>

namespace drivetrain {

constexpr std::size_t kReportColumns = 100;

// `text` broken between words; the first line begins with `first`, the others with as many spaces. Ends with a newline.
std::string wrapped(const std::string& first, const std::string& text, std::size_t columns = kReportColumns);
// `text` in `width` columns: cut with "..." or filled with spaces.
std::string padded(const std::string& text, std::size_t width);
// The same, filled on the left.
std::string right_aligned(const std::string& text, std::size_t width);

}  // namespace drivetrain
