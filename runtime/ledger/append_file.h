// The container of both ledger files: a header of 256 bytes with a LedgerInfo, then whatever is appended. Little-endian.
// Appending is buffered and reaches the file at least once a second of the time it is told, so that a reader of a
// running job sees nearly all of it, possibly with a torn end.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>

#include "runtime/ledger/ledger_info.h"

namespace drivetrain {

using LedgerMagic = std::array<char, 8>;
constexpr std::uint32_t kLedgerVersion = 2;
constexpr std::uintmax_t kLedgerHeaderBytes = 256;

class AppendFile {
 public:
  // Continues a file of this version, replaces anything else. Throws kIo naming the file.
  AppendFile(std::filesystem::path file, const LedgerMagic& magic, std::uint32_t record_bytes, LedgerInfo info);
  // Cuts the file to `bytes` (header included) and writes the header of this process.
  void restart(std::uintmax_t bytes, std::int64_t resumed_after);
  void append(std::span<const std::byte> bytes);
  void end_record(std::int64_t now_ns);
  std::uintmax_t bytes() const { return bytes_; }  // header included, buffered ones too
  const std::filesystem::path& path() const { return file_; }

 private:
  void write_header();
  void check() const;

  std::filesystem::path file_;
  LedgerMagic magic_;
  std::uint32_t record_bytes_;
  LedgerInfo info_;
  std::ofstream out_;
  std::uintmax_t bytes_ = 0;
  std::int64_t flushed_ns_ = 0;
};

// Opens a file and reads its header; the stream stands behind it. Throws kIo when it cannot be read, kData naming the
// file when it is empty, foreign or of another version.
LedgerInfo open_ledger(std::ifstream& in, const std::filesystem::path& file, const LedgerMagic& magic,
                       std::uint32_t record_bytes);

}  // namespace drivetrain
