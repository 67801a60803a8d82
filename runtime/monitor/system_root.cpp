#include "runtime/monitor/system_root.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace drivetrain {
namespace {

constexpr std::string_view kWhite = " \t\r\n";

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; (at = text.find_first_not_of(separators, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

}  // namespace

SystemRoot::SystemRoot(std::filesystem::path root) : root_(std::move(root)) {}

std::optional<std::string> SystemRoot::bytes(const std::string& path) const {
  const int file = open((root_ / path).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  std::array<char, 8192> buffer;
  ssize_t count = 0;
  while ((count = read(file, buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<size_t>(count));
  close(file);
  if (count < 0) return std::nullopt;  // files of /sys may open and then refuse
  return text;
}

std::optional<std::string> SystemRoot::text(const std::string& path) const {
  auto content = bytes(path);
  if (content) content->erase(content->find_last_not_of(kWhite) + 1);
  return content;
}

std::optional<std::int64_t> SystemRoot::integer(const std::string& path) const {
  const auto content = text(path);
  return content ? parse_integer(*content) : std::nullopt;
}

std::vector<std::string> SystemRoot::entries(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(root_ / folder, failed), end; !failed && it != end;
       it.increment(failed))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> SystemRoot::link_name(const std::string& path) const {
  std::error_code failed;
  const auto target = std::filesystem::read_symlink(root_ / path, failed);
  if (failed) return std::nullopt;
  return target.filename().string();
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> words_of(std::string_view text) {
  return split(text, kWhite);
}

std::vector<std::string_view> lines_of(std::string_view text) {
  return split(text, "\n");
}

}  // namespace drivetrain
