// Small files of /proc and /sys, below a root that tests replace by a folder of their own. Whatever cannot be read is
// absent, never an error: no figure of the monitor may stop a training.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace drivetrain {

class SystemRoot {
 public:
  explicit SystemRoot(std::filesystem::path root = "/");

  // Paths are relative to the root: "proc/stat".
  std::optional<std::string> bytes(const std::string& path) const;
  std::optional<std::string> text(const std::string& path) const;  // without trailing white space; "" is a value
  std::optional<std::int64_t> integer(const std::string& path) const;
  std::vector<std::string> entries(const std::string& folder) const;  // names, sorted
  // Last part of where a symbolic link leads: the driver of a device, its PCI address.
  std::optional<std::string> link_name(const std::string& path) const;
  std::filesystem::path operator/(const std::string& path) const { return root_ / path; }

 private:
  std::filesystem::path root_;
};

// The whole text as a decimal integer.
std::optional<std::int64_t> parse_integer(std::string_view text);
// The text as words, split at white space. They point into it.
std::vector<std::string_view> words_of(std::string_view text);
std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace drivetrain
