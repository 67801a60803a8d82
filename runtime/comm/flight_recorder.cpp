#include "runtime/comm/flight_recorder.h"

#include <bit>

namespace drivetrain {
namespace {

using Words = std::array<std::uint64_t, 8>;
constexpr std::size_t kLastArrival = 4, kEnd = 5, kBytes = 6;  // words of a FlightEntry that are filled in at its end

// A line is written by one thread and read by anybody: its first word is taken away, the others are stored, and the
// first word comes last (a seqlock; Boehm, "Can seqlocks get along with programming language memory models?"). Every
// word is released and acquired instead of fences between them, which the thread sanitizer does not know.
void store(FlightLog::Line& line, const Words& words) {
  line.words[0].store(0, std::memory_order_relaxed);
  for (std::size_t i = 1; i < words.size(); ++i) line.words[i].store(words[i], std::memory_order_release);
  line.words[0].store(words[0], std::memory_order_release);
}

std::optional<Words> load(const FlightLog::Line& line) {
  Words words{};
  words[0] = line.words[0].load(std::memory_order_acquire);
  for (std::size_t i = 1; i < words.size(); ++i) words[i] = line.words[i].load(std::memory_order_acquire);
  if (words[0] == 0 || line.words[0].load(std::memory_order_relaxed) != words[0]) return std::nullopt;
  return words;
}

std::optional<FlightEntry> entry_at(const FlightLog& log, std::uint64_t position) {
  const auto words = load(log.entries[position % kFlightEntries]);
  if (!words) return std::nullopt;
  const auto entry = std::bit_cast<FlightEntry>(*words);
  if (entry.number != static_cast<std::uint32_t>(position + 1)) return std::nullopt;
  return entry;
}

}  // namespace

const char* name(FlightTransport transport) {
  constexpr std::array kNames = {"threads", "shm", "mpi", "hierarchical"};
  const auto i = static_cast<std::size_t>(transport);
  return i < kNames.size() ? kNames[i] : "?";
}

CallRecord FlightEntry::call() const {
  CallRecord record = make_record(op, dtype, count);
  record.sequence = sequence;
  record.arrival_ns = arrival_ns;
  record.root = root;
  record.reduce = static_cast<ReduceOp>(reduce);
  return record;
}

void FlightRecorder::name_group(std::uint32_t id, int size, const std::string& text) {
  FlightGroup group{id, size, {}};
  text.copy(group.text.data(), group.text.size() - 1);
  const std::uint64_t position = log_.groups.fetch_add(1, std::memory_order_relaxed);
  store(log_.group_names[position % kFlightGroups], std::bit_cast<Words>(group));
}

void FlightRecorder::begin(std::uint32_t group, CallRecord& call, FlightTransport transport) {
  const std::uint64_t position = log_.calls.fetch_add(1, std::memory_order_relaxed);
  FlightEntry entry;
  entry.number = call.flight = static_cast<std::uint32_t>(position + 1);
  entry.op = call.op;
  entry.dtype = call.dtype;
  entry.reduce = static_cast<std::uint8_t>(call.reduce);
  entry.transport = transport;
  entry.sequence = call.sequence;
  entry.count = call.count;
  entry.arrival_ns = call.arrival_ns;
  entry.group = group;
  entry.root = call.root;
  store(log_.entries[position % kFlightEntries], std::bit_cast<Words>(entry));
}

void FlightRecorder::end(const CallRecord& call, std::int64_t last_arrival_ns, std::int64_t end_ns,
                         std::int64_t bytes) {
  if (call.flight == 0) return;
  FlightLog::Line& line = log_.entries[(call.flight - 1) % kFlightEntries];
  const std::uint64_t first = line.words[0].load(std::memory_order_relaxed);
  if (static_cast<std::uint32_t>(first) != call.flight) return;  // more than a ring of calls ago
  line.words[kLastArrival].store(static_cast<std::uint64_t>(last_arrival_ns), std::memory_order_relaxed);
  line.words[kBytes].store(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
  line.words[kEnd].store(static_cast<std::uint64_t>(end_ns), std::memory_order_release);
}

std::vector<FlightEntry> flight_entries(const FlightLog& log) {
  const std::uint64_t end = log.calls.load(std::memory_order_acquire);
  std::vector<FlightEntry> entries;
  for (std::uint64_t i = end > kFlightEntries ? end - kFlightEntries : 0; i < end; ++i)
    if (const auto entry = entry_at(log, i)) entries.push_back(*entry);
  return entries;
}

std::vector<FlightGroup> flight_groups(const FlightLog& log) {
  const std::uint64_t end = log.groups.load(std::memory_order_acquire);
  std::vector<FlightGroup> groups;
  for (std::uint64_t i = end > kFlightGroups ? end - kFlightGroups : 0; i < end; ++i)
    if (const auto words = load(log.group_names[i % kFlightGroups]))
      groups.push_back(std::bit_cast<FlightGroup>(*words));
  return groups;
}

std::optional<FlightEntry> newest_flight_entry(const FlightLog& log) {
  // The newest may be half written by a rank that died there; then the one before it is the last that is known.
  const std::uint64_t end = log.calls.load(std::memory_order_acquire);
  for (std::uint64_t i = end; i > 0 && i + 4 > end; --i)
    if (const auto entry = entry_at(log, i - 1)) return entry;
  return std::nullopt;
}

}  // namespace drivetrain
