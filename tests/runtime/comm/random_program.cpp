#include "tests/runtime/comm/random_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/host_memory.h"

namespace drivetrain::test {
namespace {

constexpr std::int64_t kLargest = 3000;  // above and below what travels inside the control blocks
constexpr std::size_t kFlights = 4;      // collectives on their way at once

constexpr std::size_t kKinds = 8;

using Values = std::vector<float>;
// What each world rank holds in one area, of small integers.
using Rows = std::vector<Values>;

struct Group {
  std::vector<int> members;  // world ranks in group order
  std::unique_ptr<Communicator> communicator;
};

// What the members' rows look like after one collective; rows of others stay.
class Reference {
 public:
  Reference(Rows& rows, const std::vector<int>& members) : rows_(rows), members_(members) {}

  std::size_t size() const { return members_.size(); }
  Values reduced(std::int64_t begin, std::int64_t count, ReduceOp op) const {
    Values total = part(0, begin, count);
    for (std::size_t m = 1; m < size(); ++m) {
      const Values x = part(m, begin, count);
      for (std::size_t i = 0; i < x.size(); ++i)
        total[i] = op == ReduceOp::kMax   ? std::max(total[i], x[i])
                   : op == ReduceOp::kMin ? std::min(total[i], x[i])
                                          : total[i] + x[i];
    }
    if (op == ReduceOp::kAverage)
      for (float& x : total) x /= static_cast<float>(size());
    return total;
  }
  Values part(std::size_t member, std::int64_t begin, std::int64_t count) const {
    const Values& row = rows_[static_cast<std::size_t>(members_[member])];
    return {row.begin() + begin, row.begin() + begin + count};
  }
  void put(std::size_t member, std::int64_t begin, const Values& values) {
    std::copy(values.begin(), values.end(), rows_[static_cast<std::size_t>(members_[member])].begin() + begin);
  }

 private:
  Rows& rows_;
  const std::vector<int>& members_;
};

// A collective on its way: what to wait for, memory it needs, and what to put right afterwards.
struct Flight {
  std::vector<Work> works;
  Values kept;
  std::function<void()> land = [] {};
};

class Program {
 public:
  Program(Communicator& world, unsigned seed, ProgramMemory memory) : world_(world), random_(seed) {
    const auto ranks = static_cast<std::size_t>(world.size()), row = ranks * static_cast<std::size_t>(kLargest);
    const std::size_t bytes = kFlights * row * sizeof(float);
    memory_ = memory == ProgramMemory::kSymmetric ? world.symmetric_buffer(device_, bytes) : Buffer(device_, bytes);
    for (std::size_t f = 0; f < kFlights; ++f) {
      areas_.push_back(
          memory_.tensor(DType::kF32).flat(static_cast<std::int64_t>(f * row), static_cast<std::int64_t>(row)));
      expected_.emplace_back(ranks, Values(row));
      for (std::size_t r = 0; r < ranks; ++r)
        for (std::size_t i = 0; i < row; ++i) expected_[f][r][i] = static_cast<float>((i * 7 + r + f) % 5);
      std::memcpy(areas_[f].data, mine(f).data(), areas_[f].bytes());
    }
    make_groups();
  }

  void step(int number) {
    if (pick(20) == 0) replace_group();
    std::array<Flight, kFlights> flights;
    const std::size_t n = 1 + pick(kFlights);
    std::string what = "step " + std::to_string(number);
    for (std::size_t f = 0; f < n; ++f) {
      Group& group = groups_[pick(groups_.size())];
      const auto kind = pick(kKinds);
      what += ", kind " + std::to_string(kind);
      start(flights[f], f, group, kind);
    }
    for (std::size_t i = 0; i < n; ++i) {
      Flight& flight = flights[(i + static_cast<std::size_t>(world_.rank() + number)) % n];
      for (Work& work : flight.works) work.wait();
      flight.land();
    }
    for (std::size_t f = 0; f < n; ++f) {
      ASSERT_EQ(std::memcmp(areas_[f].data, mine(f).data(), areas_[f].bytes()), 0) << what << ": area " << f;
      settle(f);
    }
  }

 private:
  std::size_t pick(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  Values& mine(std::size_t flight) { return expected_[flight][static_cast<std::size_t>(world_.rank())]; }

  void make_groups() {
    const int n = world_.size();
    std::vector<int> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    add(std::vector<int>(all.rbegin(), all.rend()));
    for (int leave = 0; leave < n; ++leave) {  // every group of all but one, and every pair of neighbours
      std::vector<int> members;
      for (const int r : all)
        if (r != leave) members.push_back(r);
      add(members);
      add({leave, (leave + 1) % n});
    }
  }
  void add(std::vector<int> members) {
    const auto self = std::find(members.begin(), members.end(), world_.rank());
    const int color = self == members.end() ? -1 : 0;
    groups_.push_back({members, world_.split(color, static_cast<int>(self - members.begin()))});
  }
  void replace_group() {
    std::vector<int> members(static_cast<std::size_t>(world_.size()));
    std::iota(members.begin(), members.end(), 0);
    std::shuffle(members.begin(), members.end(), random_);
    members.resize(1 + pick(members.size()));
    add(members);
    std::swap(groups_[pick(groups_.size())], groups_.back());
    groups_.pop_back();
  }

  // Keeps the numbers small, on both sides.
  void settle(std::size_t flight) {
    for (Values& row : expected_[flight])
      for (float& x : row) x = static_cast<float>(static_cast<long>(x) % 11);
    std::memcpy(areas_[flight].data, mine(flight).data(), areas_[flight].bytes());
  }

  void start(Flight& flight, std::size_t area, Group& group, std::size_t kind);
  void start_exchange(Flight& flight, std::size_t area, Group& group, std::size_t kind, std::int64_t count);

  Communicator& world_;
  std::mt19937 random_;
  HostMemory device_;
  Buffer memory_;
  std::vector<Tensor> areas_;   // this rank's, one per flight
  std::vector<Rows> expected_;  // by flight and world rank
  std::vector<Group> groups_;
};

void Program::start(Flight& flight, std::size_t area, Group& group, std::size_t kind) {
  const auto root = pick(group.members.size());
  const auto count = static_cast<std::int64_t>(pick(kLargest));
  const ReduceOp op = std::array{ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kAverage}[pick(4)];
  Reference reference(expected_[area], group.members);
  Communicator* c = group.communicator.get();
  const std::size_t n = reference.size();
  const Tensor x = areas_[area];
  const auto to = static_cast<int>(root);
  // What a collective may overwrite without saying with what is put back.
  const auto keep = [&](std::int64_t begin, std::int64_t elements) {
    const Tensor part = x.flat(begin, elements);
    flight.kept.assign(part.as<float>(), part.as<float>() + elements);
    flight.land = [&flight, part] { std::copy(flight.kept.begin(), flight.kept.end(), part.as<float>()); };
  };
  if (kind == 0) {
    const Values total = reference.reduced(0, count, op);
    for (std::size_t m = 0; m < n; ++m) reference.put(m, 0, total);
    if (c) flight.works.push_back(c->all_reduce(x.flat(0, count), op));
  } else if (kind == 1) {
    const Values value = reference.part(root, 0, count);
    for (std::size_t m = 0; m < n; ++m) reference.put(m, 0, value);
    if (c) flight.works.push_back(c->broadcast(x.flat(0, count), to));
  } else if (kind == 2) {
    if (c && c->rank() != to) keep(0, count);
    reference.put(root, 0, reference.reduced(0, count, op));
    if (c) flight.works.push_back(c->reduce(x.flat(0, count), to, op));
  } else if (kind == 3) {  // in place; only the own share is defined afterwards
    std::vector<Values> totals;
    for (std::size_t m = 0; m < n; ++m)
      totals.push_back(reference.reduced(static_cast<std::int64_t>(m) * count, count, op));
    for (std::size_t m = 0; m < n; ++m) reference.put(m, static_cast<std::int64_t>(m) * count, totals[m]);
    if (!c) return;
    const std::int64_t at = c->rank() * count, all = static_cast<std::int64_t>(n) * count;
    flight.kept.assign(x.as<float>(), x.as<float>() + all);
    flight.land = [&flight, x, at, count] {
      std::copy_n(x.as<float>() + at, count, flight.kept.begin() + at);
      std::copy(flight.kept.begin(), flight.kept.end(), x.as<float>());
    };
    flight.works.push_back(c->reduce_scatter(x.flat(at, count), x.flat(0, all), op));
  } else if (kind == 4) {
    if (c) c->barrier();
  } else {
    start_exchange(flight, area, group, kind, count);
  }
}

void Program::start_exchange(Flight& flight, std::size_t area, Group& group, std::size_t kind, std::int64_t count) {
  Rows before = expected_[area];
  const Reference old(before, group.members);
  Reference reference(expected_[area], group.members);
  Communicator* c = group.communicator.get();
  const std::size_t n = reference.size();
  const std::int64_t whole = static_cast<std::int64_t>(n) * count;
  const Tensor x = areas_[area];
  const auto share = [&](std::size_t m) { return static_cast<std::int64_t>(m) * count; };
  const auto copy_of = [&](std::int64_t elements) {
    flight.kept.assign(x.as<float>(), x.as<float>() + elements);
    return Tensor(flight.kept.data(), DType::kF32, {elements});
  };
  if (kind == 5) {  // all_gather in place
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t q = 0; q < n; ++q) reference.put(m, share(q), old.part(q, share(q), count));
    if (c) flight.works.push_back(c->all_gather(x.flat(0, whole), x.flat(c->rank() * count, count)));
  } else if (kind == 6) {  // all_to_all
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t q = 0; q < n; ++q) reference.put(m, share(q), old.part(q, share(m), count));
    if (c) flight.works.push_back(c->all_to_all(x.flat(0, whole), copy_of(whole)));
  } else if (n > 1) {  // a ring of messages
    for (std::size_t m = 0; m < n; ++m) reference.put((m + 1) % n, 0, old.part(m, 0, count));
    if (!c) return;
    const int size = static_cast<int>(n);
    Work sent = c->send(copy_of(count), (c->rank() + 1) % size);
    flight.works.push_back(c->recv(x.flat(0, count), (c->rank() + size - 1) % size));
    sent.wait();  // before this rank waits in another group
  }
}

}  // namespace

void run_random_program(Communicator& world, int steps, unsigned seed, ProgramMemory memory) {
  Program program(world, seed, memory);
  for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) program.step(i);
}

}  // namespace drivetrain::test
