#include "runtime/monitor/proc_text.h"

#include <charconv>

#include "runtime/monitor/system_root.h"

namespace drivetrain {
std::string_view proc_line(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() > key.size() && line.starts_with(key)) {
      const char next = line[key.size()];
      if (next == ':' || next == ' ' || next == '\t') return line.substr(key.size() + 1);
    }
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
  }
  return {};
}

Reading proc_word(const std::vector<std::string_view>& words, std::size_t n) {
  if (n >= words.size()) return std::nullopt;
  double value = 0;
  const auto [end, status] = std::from_chars(words[n].data(), words[n].data() + words[n].size(), value);
  if (status != std::errc() || end != words[n].data() + words[n].size()) return std::nullopt;
  return value;
}

Reading proc_value(std::string_view text, std::string_view key) {
  const auto words = words_of(proc_line(text, key));
  const Reading value = proc_word(words, 0);
  return value && words.size() > 1 && words[1] == "kB" ? Reading(*value * 1024) : value;
}

std::vector<int> cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    const std::size_t dash = item.find('-');
    const auto first = parse_integer(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(item.substr(dash + 1));
    constexpr std::int64_t kMostCpus = 1 << 16;
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus) return {};
    for (std::int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    text.remove_prefix(item.size() < text.size() ? item.size() + 1 : item.size());
  }
  return cpus;
}

}  // namespace drivetrain
