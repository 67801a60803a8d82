#include "runtime/comm/flight_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::array<char, 8> kMagic = {'D', 'T', 'F', 'L', 'I', 'G', 'H', 'T'};
constexpr std::uint32_t kMostRanks = 1u << 16;  // of one host; more is a damaged file

struct FileHeader {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = FlightFile::kVersion;
  std::uint32_t ranks = 0;
  std::int64_t wall_ns = 0, steady_ns = 0;
  std::array<char, 64> host{};
  std::array<char, 2048> reason{};
};

struct RankHeader {
  std::int32_t world_rank = 0, pid = 0;
  std::uint32_t state = 0;
  std::uint32_t groups = 0, entries = 0;  // that follow, in this order
  std::uint32_t reserved = 0;
  std::uint64_t calls = 0;
};

template <class T>
void put(std::ostream& out, const T& record) {
  static_assert(std::is_trivially_copyable_v<T>);
  out.write(reinterpret_cast<const char*>(&record), sizeof record);
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path), in_(path, std::ios::binary) {
    if (!in_ || std::filesystem::is_directory(path))
      throw Error(ErrorKind::kIo, path.string() + ": cannot be read: " + std::strerror(errno ? errno : EISDIR));
  }
  template <class T>
  T take() {
    T record;
    in_.read(reinterpret_cast<char*>(&record), sizeof record);
    if (in_.gcount() != sizeof record) fail("is cut short after " + std::to_string(read_) + " bytes");
    read_ += sizeof record;
    return record;
  }
  bool at_end() { return in_.peek() == std::ifstream::traits_type::eof(); }
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kData, path_.string() + ": " + what);
  }

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  std::size_t read_ = 0;
};

template <std::size_t N>
std::string text_of(const std::array<char, N>& bytes) {
  return {bytes.begin(), std::find(bytes.begin(), bytes.end(), '\0')};
}

}  // namespace

void write_flight_file(const std::filesystem::path& path, const FlightFile& file) {
  std::filesystem::create_directories(path.parent_path());
  const std::filesystem::path draft = path.string() + ".part" + std::to_string(getpid());
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  FileHeader header;
  header.ranks = static_cast<std::uint32_t>(file.ranks.size());
  header.wall_ns = file.wall_ns;
  header.steady_ns = file.steady_ns;
  file.host.copy(header.host.data(), header.host.size() - 1);
  file.reason.copy(header.reason.data(), header.reason.size() - 1);
  put(out, header);
  for (const FlightRank& rank : file.ranks) {
    RankHeader mine;
    mine.world_rank = rank.world_rank;
    mine.pid = rank.pid;
    mine.state = static_cast<std::uint32_t>(rank.state);
    mine.groups = static_cast<std::uint32_t>(rank.groups.size());
    mine.entries = static_cast<std::uint32_t>(rank.entries.size());
    mine.calls = rank.calls;
    put(out, mine);
    for (const FlightGroup& group : rank.groups) put(out, group);
    for (const FlightEntry& entry : rank.entries) put(out, entry);
  }
  out.close();
  if (!out) throw Error(ErrorKind::kIo, draft.string() + ": cannot be written: " + std::strerror(errno));
  std::filesystem::rename(draft, path);
}

FlightFile read_flight_file(const std::filesystem::path& path) {
  Reader in(path);
  const auto magic = in.at_end() ? std::array<char, 8>{} : in.take<std::array<char, 8>>();
  if (magic != kMagic) in.fail("is not a flight recorder file");
  const auto version = in.take<std::uint32_t>();
  if (version != FlightFile::kVersion)
    in.fail("is a flight recorder file of version " + std::to_string(version) + "; this drivetrain reads version " +
            std::to_string(FlightFile::kVersion));
  FlightFile file;
  const auto ranks = in.take<std::uint32_t>();
  file.wall_ns = in.take<std::int64_t>();
  file.steady_ns = in.take<std::int64_t>();
  file.host = text_of(in.take<std::array<char, 64>>());
  file.reason = text_of(in.take<std::array<char, 2048>>());
  if (ranks > kMostRanks) in.fail("is damaged: it claims to hold " + std::to_string(ranks) + " ranks");
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const auto header = in.take<RankHeader>();
    if (header.groups > kFlightGroups || header.entries > kFlightEntries)
      in.fail("is damaged: rank " + std::to_string(header.world_rank) + " claims to have " +
              std::to_string(header.groups) + " groups and " + std::to_string(header.entries) + " calls");
    FlightRank rank{header.world_rank, header.pid, static_cast<RankState>(header.state), header.calls, {}, {}};
    for (std::uint32_t i = 0; i < header.groups; ++i) {
      rank.groups.push_back(in.take<FlightGroup>());
      rank.groups.back().text.back() = '\0';
    }
    for (std::uint32_t i = 0; i < header.entries; ++i) rank.entries.push_back(in.take<FlightEntry>());
    file.ranks.push_back(std::move(rank));
  }
  if (!in.at_end()) in.fail("is damaged: there is more after its last rank");
  return file;
}

}  // namespace drivetrain
