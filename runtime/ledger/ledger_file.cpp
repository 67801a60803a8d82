#include "runtime/ledger/ledger_file.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr LedgerMagic kMagic{'D', 'T', 'L', 'E', 'D', 'G', 'E', 'R'};

}  // namespace

std::filesystem::path ledger_path(const std::filesystem::path& ledger_folder, int world_rank) {
  char file[32];
  std::snprintf(file, sizeof file, "rank-%05d.bin", world_rank);
  return ledger_folder / file;
}

LedgerFile::LedgerFile(const std::filesystem::path& file, const LedgerInfo& info)
    : out_(file, kMagic, sizeof(StepRecord), info) {}

void LedgerFile::keep_until(std::int64_t step) {
  std::uintmax_t keep = kLedgerHeaderBytes;
  for (const StepRecord& r : read_ledger(out_.path()).records) {
    if (r.step > step) break;
    keep += sizeof(StepRecord);
  }
  out_.restart(keep, step);
}

void LedgerFile::append(const StepRecord& record) {
  out_.append(std::as_bytes(std::span(&record, 1)));
  out_.end_record(record.begin_ns + record.wall_ns);
}

RankLedger read_ledger(const std::filesystem::path& file, std::int64_t last) {
  std::ifstream in;
  RankLedger out{open_ledger(in, file, kMagic, sizeof(StepRecord)), {}};
  const auto whole =
      static_cast<std::int64_t>((std::filesystem::file_size(file) - kLedgerHeaderBytes) / sizeof(StepRecord));
  const std::int64_t wanted = last > 0 ? std::min(last, whole) : whole;
  in.seekg(static_cast<std::streamoff>(kLedgerHeaderBytes) + (whole - wanted) * std::streamoff{sizeof(StepRecord)});
  out.records.resize(static_cast<std::size_t>(wanted));
  in.read(reinterpret_cast<char*>(out.records.data()), wanted * std::streamsize{sizeof(StepRecord)});
  out.records.resize(static_cast<std::size_t>(in.gcount()) / sizeof(StepRecord));
  return out;
}

std::vector<RankLedger> read_run_ledger(const std::filesystem::path& run_folder, std::int64_t last) {
  const std::filesystem::path inside = run_folder / "ledger";
  const std::filesystem::path folder = std::filesystem::is_directory(inside) ? inside : run_folder;
  const std::filesystem::path first = ledger_path(folder, 0);
  if (!std::filesystem::exists(first))
    throw Error(ErrorKind::kData, run_folder.string() + " holds no ledger: there is no " + first.string() +
                                      "; name the folder of a run, runs/NAME");
  std::vector<RankLedger> ranks;
  ranks.push_back(read_ledger(first, last));
  for (int r = 1; r < ranks[0].info.world_size; ++r) {
    const std::filesystem::path file = ledger_path(folder, r);
    if (std::filesystem::exists(file)) ranks.push_back(read_ledger(file, last));
  }
  return ranks;
}

}  // namespace drivetrain
