#include "runtime/ledger/event_file.h"

#include <cstdio>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr LedgerMagic kMagic{'D', 'T', 'E', 'V', 'E', 'N', 'T', 'S'};

struct StepHeader {
  std::int64_t step = 0, begin_ns = 0, wall_ns = 0, dropped = 0, count = 0;
};
static_assert(sizeof(StepHeader) == 40);

// Calls visit(header, end of the step in the file) for each whole step, with the stream at its events.
template <class Visit>
void for_steps(std::ifstream& in, const std::filesystem::path& file, const Visit& visit) {
  const std::uintmax_t size = std::filesystem::file_size(file);
  std::uintmax_t at = kLedgerHeaderBytes;
  StepHeader header;
  while (in.read(reinterpret_cast<char*>(&header), sizeof header)) {
    if (header.count < 0) throw Error(ErrorKind::kData, file.string() + " is damaged at byte " + std::to_string(at));
    const auto count = static_cast<std::uintmax_t>(header.count);
    at += sizeof header;
    if (at > size || count > (size - at) / sizeof(LedgerEvent)) return;  // torn
    at += count * sizeof(LedgerEvent);
    visit(header, at);
    in.seekg(static_cast<std::streamoff>(at));
  }
}

}  // namespace

std::filesystem::path events_path(const std::filesystem::path& ledger_folder, int world_rank) {
  char file[32];
  std::snprintf(file, sizeof file, "events-%05d.bin", world_rank);
  return ledger_folder / file;
}

std::int64_t EventBudget::stride(std::uintmax_t bytes) const {
  if (bytes < full_bytes) return 1;
  const std::uintmax_t k = 1 + (bytes - full_bytes) / more_bytes;
  return std::int64_t{1} << (k < 62 ? k : 62);
}

EventFile::EventFile(const std::filesystem::path& file, const LedgerInfo& info, EventBudget budget)
    : out_(file, kMagic, sizeof(LedgerEvent), info), budget_(budget) {}

void EventFile::keep_until(std::int64_t step) {
  std::ifstream in;
  open_ledger(in, out_.path(), kMagic, sizeof(LedgerEvent));
  std::uintmax_t keep = kLedgerHeaderBytes;
  for_steps(in, out_.path(), [&](const StepHeader& header, std::uintmax_t end) {
    if (header.step <= step) keep = end;
  });
  out_.restart(keep, step);
}

void EventFile::append(const StepRecord& r, std::span<const LedgerEvent> events, std::int64_t dropped) {
  if (r.step % budget_.stride(out_.bytes()) != 0) return;
  const StepHeader header{r.step, r.begin_ns, r.wall_ns, dropped, static_cast<std::int64_t>(events.size())};
  out_.append(std::as_bytes(std::span(&header, 1)));
  out_.append(std::as_bytes(events));
  out_.end_record(r.begin_ns + r.wall_ns);
}

RankEvents read_events(const std::filesystem::path& file, std::int64_t first, std::int64_t last) {
  std::ifstream in;
  RankEvents out{open_ledger(in, file, kMagic, sizeof(LedgerEvent)), {}};
  for_steps(in, file, [&](const StepHeader& header, std::uintmax_t) {
    if (header.step < first || header.step > last) return;
    StepEvents step{header.step, header.begin_ns, header.wall_ns, header.dropped, {}};
    step.events.resize(static_cast<std::size_t>(header.count));
    in.read(reinterpret_cast<char*>(step.events.data()),
            header.count * static_cast<std::streamsize>(sizeof(LedgerEvent)));
    out.steps.push_back(std::move(step));
  });
  return out;
}

}  // namespace drivetrain
