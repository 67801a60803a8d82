// Files as this folder needs them: every system call checked, errors as kIo naming the file, the reason and, when the
// disk is full, the bytes wanted and free. Knows no format.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace drivetrain {

// Throws kIo "cannot <action> <file>: <reason of errno value `error`>".
[[noreturn]] void throw_io(const std::string& action, const std::filesystem::path& file, int error);

// True for a name that stays in its folder: no separators (not even Windows'), no NUL, not "", "." or "..".
bool is_plain_file_name(std::string_view name);

// A file being created. It is on disk only after sync_and_close(); destroyed before that, it is closed and left.
class OutputFile {
 public:
  // expected_bytes: the size it shall have, for the message when the disk is full.
  OutputFile(const std::filesystem::path& file, std::uint64_t expected_bytes);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t written_bytes() const { return written_bytes_; }
  void write(std::span<const std::byte> bytes);
  void sync_and_close();

 private:
  std::filesystem::path path_;
  std::uint64_t expected_bytes_;
  std::uint64_t written_bytes_ = 0;
  int descriptor_ = -1;
};

// Makes entries created in or renamed into the folder durable.
void sync_folder(const std::filesystem::path& folder);
// Creates `file` with this text and makes it durable.
void write_text_file(const std::filesystem::path& file, std::string_view text);
// The same through a temporary name beside it, so that a reader sees the old text or the new one.
void replace_text_file(const std::filesystem::path& file, std::string_view text);
// Throws kData when the file has more than max_bytes.
std::string read_text_file(const std::filesystem::path& file, std::uint64_t max_bytes);

}  // namespace drivetrain
