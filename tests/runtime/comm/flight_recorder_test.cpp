// The flight recorder's memory: order, wrap-around, and readers beside writers.
#include "runtime/comm/flight_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runtime/comm/rank_report.h"

namespace drivetrain {
namespace {

CallRecord call_number(std::uint64_t sequence) {
  CallRecord call = make_record(CollectiveOp::kAllReduce, DType::kF32, static_cast<std::int64_t>(3 * sequence));
  call.sequence = sequence;
  call.arrival_ns = static_cast<std::int64_t>(5 * sequence);
  call.reduce = ReduceOp::kMax;
  return call;
}

TEST(FlightRecorder, KeepsTheNewestCallsInOrderWithTheirTimes) {
  const auto log = std::make_unique<FlightLog>();
  FlightRecorder recorder(*log);
  EXPECT_EQ(describe_newest(*log), "none yet");
  recorder.name_group(7, 2, "group {0, 2} of the world");
  const std::uint64_t calls = kFlightEntries + 100;
  for (std::uint64_t i = 1; i <= calls; ++i) {
    CallRecord call = call_number(i);
    recorder.begin(7, call, FlightTransport::kShm);
    if (i < calls) recorder.end(call, call.arrival_ns + 1, call.arrival_ns + 2, 12);
  }
  const auto entries = flight_entries(*log);
  ASSERT_EQ(entries.size(), kFlightEntries);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const FlightEntry& e = entries[i];
    ASSERT_EQ(e.number, i + 101);
    ASSERT_EQ(e.count, static_cast<std::int64_t>(3 * e.sequence));
    ASSERT_EQ(e.finished(), i + 1 < entries.size());
    if (e.finished()) {
      ASSERT_EQ(e.last_arrival_ns, e.arrival_ns + 1);
      ASSERT_EQ(e.end_ns, e.arrival_ns + 2);
      ASSERT_EQ(e.bytes, 12);
    }
  }
  const std::string newest = describe_newest(*log);
  EXPECT_TRUE(newest.starts_with("all_reduce(f32[3372], max) #1124 in group {0, 2} of the world, begun ")) << newest;
}

TEST(FlightRecorder, TheEndOfACallLongOverwrittenChangesNothing) {
  const auto log = std::make_unique<FlightLog>();
  FlightRecorder recorder(*log);
  CallRecord first = call_number(1);
  recorder.begin(0, first, FlightTransport::kMpi);
  for (std::uint64_t i = 2; i <= kFlightEntries + 1; ++i) {
    CallRecord call = call_number(i);
    recorder.begin(0, call, FlightTransport::kMpi);
  }
  recorder.end(first, 1, 2, 3);
  for (const FlightEntry& entry : flight_entries(*log)) EXPECT_FALSE(entry.finished()) << entry.number;
}

TEST(FlightRecorder, AReaderBesideTwoWritersSeesWholeEntriesOnly) {
  const auto log = std::make_unique<FlightLog>();
  std::atomic<bool> reading{true};
  const auto write = [&](std::uint32_t group) {
    FlightRecorder recorder(*log);
    for (std::uint64_t i = 1; reading; ++i) {
      CallRecord call = call_number(i);
      recorder.begin(group, call, FlightTransport::kThreads);
      recorder.end(call, 1, 2, 3);
    }
  };
  std::thread one(write, 1), two(write, 2);
  for (std::size_t seen = 0; seen < 20 * kFlightEntries;) {
    for (const FlightEntry& e : flight_entries(*log)) {
      ++seen;
      EXPECT_EQ(e.count, static_cast<std::int64_t>(3 * e.sequence));
      EXPECT_EQ(e.arrival_ns, static_cast<std::int64_t>(5 * e.sequence));
      EXPECT_TRUE(e.group == 1 || e.group == 2);
    }
  }
  reading = false;
  one.join();
  two.join();
}

}  // namespace
}  // namespace drivetrain
