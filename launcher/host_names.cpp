#include "launcher/host_names.h"

#include <charconv>
#include <sstream>

#include "kernels/error.h"
#include "launcher/hosts.h"

namespace drivetrain {
namespace {

constexpr std::size_t kMostHosts = 100000;
constexpr std::size_t kLongestName = 253;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorKind::kUsage, "'" + text + "' " + why);
}

std::vector<std::string> expand_range(const std::string& range, const std::string& whole) {
  const std::size_t dash = range.find('-');
  const std::string first_text = range.substr(0, dash);
  const std::string last_text = dash == std::string::npos ? first_text : range.substr(dash + 1);
  const auto number = [&](const std::string& text) {
    long value = -1;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool good = status == std::errc() && end == text.data() + text.size() && value >= 0 && text.size() <= 9;
    if (!good) refuse(whole, "has a bad range '" + range + "'; wants n[1-3,07]");
    return value;
  };
  const long first = number(first_text), last = number(last_text);
  if (last < first || static_cast<std::size_t>(last - first) >= kMostHosts)
    refuse(whole, "has a bad range '" + range + "'");
  std::vector<std::string> texts;
  for (long value = first; value <= last; ++value) {
    std::string text = std::to_string(value);
    if (text.size() < first_text.size()) text.insert(0, first_text.size() - text.size(), '0');
    texts.push_back(text);
  }
  return texts;
}

void check_name(const std::string& name) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
  const bool good = !name.empty() && name.size() <= kLongestName && name[0] != '-' &&
                    name.find_first_not_of(kAllowed) == std::string::npos;
  if (!good) refuse(name, "is not a host name");
}

std::vector<std::string> expand_piece(const std::string& piece) {
  std::vector<std::string> names{""};
  std::size_t at = 0;
  while (at < piece.size()) {
    std::vector<std::string> tails;
    if (piece[at] == '[') {
      const std::size_t close = piece.find(']', at);
      if (close == std::string::npos) refuse(piece, "has an open bracket");
      std::istringstream ranges(piece.substr(at + 1, close - at - 1));
      for (std::string range; std::getline(ranges, range, ',');) {
        for (const std::string& text : expand_range(range, piece)) tails.push_back(text);
      }
      if (tails.empty()) refuse(piece, "has empty brackets");
      at = close + 1;
    } else {
      const std::size_t open = piece.find('[', at);
      tails.push_back(piece.substr(at, open - at));
      at = open == std::string::npos ? piece.size() : open;
    }
    if (names.size() * tails.size() > kMostHosts) refuse(piece, "is more than 100000 hosts");
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& tail : tails) longer.push_back(name + tail);
    }
    names = std::move(longer);
  }
  for (const std::string& name : names) check_name(name);
  return names;
}

}  // namespace

std::vector<std::string> split_outside_brackets(const std::string& text) {
  std::vector<std::string> pieces{""};
  int depth = 0;
  for (const char c : text) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ',' && depth <= 0) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

std::vector<std::string> expand_host_names(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& piece : split_outside_brackets(text)) {
    const std::vector<std::string> expanded = expand_piece(piece);
    names.insert(names.end(), expanded.begin(), expanded.end());
  }
  return names;
}

}  // namespace drivetrain
