#include "runtime/ledger/append_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <system_error>
#include <type_traits>

#include "kernels/error.h"

namespace drivetrain {
namespace {

static_assert(std::endian::native == std::endian::little, "ledger files are little-endian");

struct RawHeader {
  LedgerMagic magic{};
  std::uint32_t version = kLedgerVersion, header_bytes = kLedgerHeaderBytes, record_bytes = 0;
  std::int32_t world_rank = 0, world_size = 1, dp = 1, tp = 1, threads = 1;
  double flops_per_token = 0, peak_flops = 0;
  std::int64_t resumed_after = 0, steady_ns = 0, unix_ns = 0;
  std::array<char, 16> compute{};
  std::array<char, 64> host{};
  std::array<char, 96> device{};
};
static_assert(sizeof(RawHeader) == kLedgerHeaderBytes && std::is_trivially_copyable_v<RawHeader>);

template <std::size_t N>
void put(std::array<char, N>& to, const std::string& text) {
  std::copy_n(text.begin(), std::min(text.size(), N - 1), to.begin());
}
template <std::size_t N>
std::string get(const std::array<char, N>& from) {
  return std::string(from.begin(), std::find(from.begin(), from.end(), '\0'));
}

Error unreadable(const std::filesystem::path& file, const std::string& why) {
  return Error(ErrorKind::kData, file.string() + " is not a ledger that this drivetrain reads: " + why);
}

bool can_continue(const std::filesystem::path& file, const LedgerMagic& magic, std::uint32_t record_bytes,
                  int world_rank) {
  std::ifstream in;
  try {
    return open_ledger(in, file, magic, record_bytes).world_rank == world_rank;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<int> axis_members(const LedgerInfo& info, CommAxis axis) {
  const int dp_rank = info.world_rank / info.tp, tp_rank = info.world_rank % info.tp;
  std::vector<int> members;
  if (axis == CommAxis::kTp)
    for (int t = 0; t < info.tp; ++t) members.push_back(dp_rank * info.tp + t);
  else if (axis == CommAxis::kDp)
    for (int d = 0; d < info.dp; ++d) members.push_back(d * info.tp + tp_rank);
  else
    for (int r = 0; r < info.world_size; ++r) members.push_back(r);
  return members;
}

AppendFile::AppendFile(std::filesystem::path file, const LedgerMagic& magic, std::uint32_t record_bytes,
                       LedgerInfo info)
    : file_(std::move(file)), magic_(magic), record_bytes_(record_bytes), info_(std::move(info)) {
  if (can_continue(file_, magic, record_bytes, info_.world_rank)) {
    bytes_ = std::filesystem::file_size(file_);
    out_.open(file_, std::ios::binary | std::ios::app);
    check();
  } else {
    out_.open(file_, std::ios::binary | std::ios::trunc);
    check();
    restart(0, 0);
  }
}

void AppendFile::restart(std::uintmax_t bytes, std::int64_t resumed_after) {
  if (out_.is_open()) out_.close();
  bytes_ = std::max(bytes, kLedgerHeaderBytes);
  std::error_code failed;
  std::filesystem::resize_file(file_, bytes_, failed);
  if (failed) throw Error(ErrorKind::kIo, "cannot resize " + file_.string() + ": " + failed.message());
  info_.resumed_after = resumed_after;
  write_header();
  out_.open(file_, std::ios::binary | std::ios::app);
  check();
}

void AppendFile::write_header() {
  RawHeader raw{.magic = magic_,
                .record_bytes = record_bytes_,
                .world_rank = info_.world_rank,
                .world_size = info_.world_size,
                .dp = info_.dp,
                .tp = info_.tp,
                .threads = info_.threads,
                .flops_per_token = info_.flops_per_token,
                .peak_flops = info_.peak_flops,
                .resumed_after = info_.resumed_after,
                .steady_ns = info_.steady_ns,
                .unix_ns = info_.unix_ns};
  put(raw.compute, info_.compute);
  put(raw.host, info_.host);
  put(raw.device, info_.device);
  std::fstream header(file_, std::ios::binary | std::ios::in | std::ios::out);
  header.write(reinterpret_cast<const char*>(&raw), sizeof raw);
  header.close();
  if (!header) throw Error(ErrorKind::kIo, "cannot write " + file_.string() + ": is the disk full?");
}

void AppendFile::check() const {
  if (!out_)
    throw Error(ErrorKind::kIo,
                "cannot write " + file_.string() + ": check the folder, its permissions and the disk's free space");
}

void AppendFile::append(std::span<const std::byte> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  bytes_ += bytes.size();
  check();
}

void AppendFile::end_record(std::int64_t now_ns) {
  constexpr std::int64_t kFlushNs = 1'000'000'000;
  if (now_ns - flushed_ns_ < kFlushNs) return;
  out_.flush();
  check();
  flushed_ns_ = now_ns;
}

LedgerInfo open_ledger(std::ifstream& in, const std::filesystem::path& file, const LedgerMagic& magic,
                       std::uint32_t record_bytes) {
  in.open(file, std::ios::binary);
  RawHeader raw;
  if (!in || std::filesystem::is_directory(file)) throw Error(ErrorKind::kIo, "cannot read " + file.string());
  in.read(reinterpret_cast<char*>(&raw), sizeof raw);
  const std::streamsize got = in.gcount();
  if (got == 0) throw unreadable(file, "it is empty; has the run begun?");
  if (got < static_cast<std::streamsize>(sizeof raw.magic + sizeof raw.version) || raw.magic != magic)
    throw unreadable(file, "it does not begin with the mark " + std::string(magic.begin(), magic.end()));
  if (raw.version != kLedgerVersion)
    throw unreadable(file, "it is of version " + std::to_string(raw.version) + ", this drivetrain reads version " +
                               std::to_string(kLedgerVersion) + "; read it with the drivetrain that wrote it");
  if (got < static_cast<std::streamsize>(sizeof raw) || raw.header_bytes != kLedgerHeaderBytes ||
      raw.record_bytes != record_bytes)
    throw unreadable(file, "its header is damaged");
  if (raw.dp < 1 || raw.tp < 1 || raw.world_size != raw.dp * raw.tp || raw.world_rank < 0 ||
      raw.world_rank >= raw.world_size)
    throw unreadable(file, "its header names rank " + std::to_string(raw.world_rank) + " of " +
                               std::to_string(raw.world_size) + " in a mesh of dp " + std::to_string(raw.dp) +
                               " x tp " + std::to_string(raw.tp));
  return {.world_rank = raw.world_rank,
          .world_size = raw.world_size,
          .dp = raw.dp,
          .tp = raw.tp,
          .threads = raw.threads,
          .flops_per_token = raw.flops_per_token,
          .peak_flops = raw.peak_flops,
          .resumed_after = raw.resumed_after,
          .steady_ns = raw.steady_ns,
          .unix_ns = raw.unix_ns,
          .compute = get(raw.compute),
          .host = get(raw.host),
          .device = get(raw.device)};
}

}  // namespace drivetrain
