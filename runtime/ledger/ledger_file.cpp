#include "runtime/ledger/ledger_file.h"

#include <array>
#include <bit>
#include <cstring>
#include <system_error>
#include <type_traits>

#include "kernels/error.h"

namespace drivetrain {
namespace {

static_assert(std::endian::native == std::endian::little, "ledger files are little-endian");

struct FileHeader {
  std::array<char, 8> magic{'D', 'T', 'L', 'E', 'D', 'G', 'E', 'R'};
  std::uint32_t version = kLedgerVersion;
  std::uint32_t record_bytes = 0;
  std::int32_t world_rank = 0;
  std::uint32_t phases = kPhases;
  std::array<std::uint64_t, 5> reserved{};
};
static_assert(sizeof(FileHeader) == 64 && std::is_trivially_copyable_v<FileHeader>);

struct FileRecord {
  std::int64_t step, begin_ns, wall_ns;
  std::array<std::int64_t, kPhases> phase_ns;
  std::int64_t tokens;
  std::array<std::int64_t, 3> reserved;
};
static_assert(sizeof(FileRecord) == 128 && std::is_trivially_copyable_v<FileRecord>);

Error unreadable(const std::filesystem::path& file, const std::string& why) {
  return Error(ErrorKind::kData, file.string() + " is not a ledger this version reads: " + why);
}

}  // namespace

LedgerFile::LedgerFile(std::filesystem::path file, int world_rank) : file_(std::move(file)) {
  std::error_code ignored;
  const bool fresh = std::filesystem::file_size(file_, ignored) < sizeof(FileHeader) || ignored;
  out_.open(file_, fresh ? std::ios::binary | std::ios::trunc : std::ios::binary | std::ios::app);
  if (fresh) {
    const FileHeader header{.record_bytes = sizeof(FileRecord), .world_rank = world_rank};
    out_.write(reinterpret_cast<const char*>(&header), sizeof header);
    out_.flush();
  }
  if (!out_) throw Error(ErrorKind::kIo, "cannot write " + file_.string() + ": check the folder and its permissions");
}

void LedgerFile::keep_until(std::int64_t step) {
  out_.flush();
  std::uintmax_t keep = sizeof(FileHeader);
  for (const StepRecord& r : read_ledger(file_).records) {
    if (r.step > step) break;
    keep += sizeof(FileRecord);
  }
  std::error_code failed;
  std::filesystem::resize_file(file_, keep, failed);
  if (failed) throw Error(ErrorKind::kIo, "cannot shorten " + file_.string() + ": " + failed.message());
  out_.close();
  out_.open(file_, std::ios::binary | std::ios::app);
}

void LedgerFile::append(const StepRecord& r) {
  const FileRecord record{r.step, r.begin_ns, r.wall_ns, r.phase_ns, r.tokens, {}};
  out_.write(reinterpret_cast<const char*>(&record), sizeof record);
  if (!out_) throw Error(ErrorKind::kIo, "cannot write " + file_.string() + ": is the disk full?");
}

LedgerContents read_ledger(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw Error(ErrorKind::kIo, "cannot read " + file.string());
  FileHeader header;
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || header.magic != FileHeader().magic) throw unreadable(file, "it does not begin with a ledger header");
  if (header.version != kLedgerVersion || header.record_bytes != sizeof(FileRecord) || header.phases != kPhases)
    throw unreadable(file,
                     "version " + std::to_string(header.version) + ", wanted " + std::to_string(kLedgerVersion));
  LedgerContents out{.world_rank = header.world_rank, .records = {}};
  FileRecord r;
  while (in.read(reinterpret_cast<char*>(&r), sizeof r))
    out.records.push_back({r.step, r.begin_ns, r.wall_ns, r.phase_ns, r.tokens});
  return out;
}

}  // namespace drivetrain
