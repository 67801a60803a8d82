#include "launcher/report/wrap.h"

namespace drivetrain {

std::string wrapped(const std::string& first, const std::string& text, std::size_t columns) {
  std::string result = first, line;
  const std::string indent(first.size(), ' ');
  const std::size_t room = columns - first.size();
  bool begun = false;
  const auto flush = [&] {
    result += (begun ? indent : "") + line + "\n";
    begun = true;
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = text.find_first_of(" \n", at);
    if (end == std::string::npos) end = text.size();
    std::string word = text.substr(at, end - at);
    if (!line.empty() && line.size() + 1 + word.size() > room) flush();
    for (; word.size() > room; word.erase(0, room)) {  // a path without spaces
      line = word.substr(0, room);
      flush();
    }
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
    if (end < text.size() && text[end] == '\n') flush();
    at = end + 1;
  }
  if (!line.empty() || !begun) flush();
  return result;
}

std::string padded(const std::string& text, std::size_t width) {
  if (text.size() > width) return width > 3 ? text.substr(0, width - 3) + "..." : text.substr(0, width);
  return text + std::string(width - text.size(), ' ');
}

std::string right_aligned(const std::string& text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

}  // namespace drivetrain
