#include "tests/runtime/comm/random_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace drivetrain::test {
namespace {

constexpr std::int64_t kLargest = 3000;  // above and below what travels inside the control blocks

// Everybody's memory, one row per world rank, of small integers.
using Memory = std::vector<std::vector<float>>;

struct Group {
  std::vector<int> members;  // world ranks in group order
  std::unique_ptr<Communicator> communicator;
};

// What the members' rows look like after one collective; rows of others stay.
class Reference {
 public:
  Reference(Memory& memory, const std::vector<int>& members) : memory_(memory), members_(members) {}

  std::vector<float> reduced(std::int64_t begin, std::int64_t count, ReduceOp op) const {
    std::vector<float> total = part(0, begin, count);
    for (std::size_t m = 1; m < members_.size(); ++m) {
      const std::vector<float> x = part(m, begin, count);
      for (std::size_t i = 0; i < x.size(); ++i)
        total[i] = op == ReduceOp::kSum   ? total[i] + x[i]
                   : op == ReduceOp::kMax ? std::max(total[i], x[i])
                                          : std::min(total[i], x[i]);
    }
    return total;
  }
  std::vector<float> part(std::size_t member, std::int64_t begin, std::int64_t count) const {
    const auto& row = memory_[static_cast<std::size_t>(members_[member])];
    return {row.begin() + begin, row.begin() + begin + count};
  }
  void put(std::size_t member, std::int64_t begin, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), memory_[static_cast<std::size_t>(members_[member])].begin() + begin);
  }

 private:
  Memory& memory_;
  const std::vector<int>& members_;
};

class Program {
 public:
  Program(Communicator& world, unsigned seed)
      : world_(world), random_(seed), expected_(static_cast<std::size_t>(world.size())) {
    for (int r = 0; r < world.size(); ++r) {
      auto& row = expected_[static_cast<std::size_t>(r)];
      row.resize(static_cast<std::size_t>(kLargest * world.size()));
      for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(r)) % 5);
    }
    mine_ = expected_[static_cast<std::size_t>(world.rank())];
    make_groups();
  }

  void step(int number) {
    Group& group = groups_[pick(groups_.size())];
    const auto kind = pick(7);
    const auto root = pick(group.members.size());
    const auto count = static_cast<std::int64_t>(pick(kLargest));
    const ReduceOp op = std::array{ReduceOp::kSum, ReduceOp::kMax, ReduceOp::kMin}[pick(3)];
    apply(group, kind, root, count, op);
    settle();
    ASSERT_EQ(mine_, expected_[static_cast<std::size_t>(world_.rank())]) << "step " << number << ", kind " << kind;
  }

 private:
  std::size_t pick(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

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
    const auto mine = std::find(members.begin(), members.end(), world_.rank());
    const int color = mine == members.end() ? -1 : 0;
    groups_.push_back({members, world_.split(color, static_cast<int>(mine - members.begin()))});
  }

  Tensor own(std::int64_t begin, std::int64_t count) { return Tensor(mine_.data() + begin, DType::kF32, {count}); }
  // Keeps the numbers small, on both sides.
  void settle() {
    const auto fold = [](float& x) { x = static_cast<float>(static_cast<long>(x) % 11); };
    std::for_each(mine_.begin(), mine_.end(), fold);
    for (auto& row : expected_) std::for_each(row.begin(), row.end(), fold);
  }

  void apply(Group& group, std::size_t kind, std::size_t root, std::int64_t count, ReduceOp op);
  void apply_exchange(Group& group, std::size_t kind, std::int64_t count);

  Communicator& world_;
  std::mt19937 random_;
  Memory expected_;
  std::vector<float> mine_;
  std::vector<Group> groups_;
};

void Program::apply(Group& group, std::size_t kind, std::size_t root, std::int64_t count, ReduceOp op) {
  Reference reference(expected_, group.members);
  Communicator* c = group.communicator.get();
  const std::size_t n = group.members.size();
  switch (kind) {
    case 0: {
      const auto total = reference.reduced(0, count, op);
      for (std::size_t m = 0; m < n; ++m) reference.put(m, 0, total);
      if (c) c->all_reduce(own(0, count), op).wait();
      return;
    }
    case 1: {
      const auto value = reference.part(root, 0, count);
      for (std::size_t m = 0; m < n; ++m) reference.put(m, 0, value);
      if (c) c->broadcast(own(0, count), static_cast<int>(root)).wait();
      return;
    }
    case 2: {
      const auto total = reference.reduced(0, count, op);
      const std::vector<float> kept = mine_;
      if (c) c->reduce(own(0, count), static_cast<int>(root), op).wait();
      if (c && c->rank() != static_cast<int>(root)) mine_ = kept;  // others' x is not defined afterwards
      reference.put(root, 0, total);
      return;
    }
    case 3: {  // in place; only the own share is defined afterwards
      std::vector<std::vector<float>> totals;
      for (std::size_t m = 0; m < n; ++m)
        totals.push_back(reference.reduced(static_cast<std::int64_t>(m) * count, count, op));
      const std::vector<float> kept = mine_;
      if (c) {
        const std::int64_t at = c->rank() * count;
        c->reduce_scatter(own(at, count), own(0, static_cast<std::int64_t>(n) * count), op).wait();
        const std::vector<float> share(mine_.begin() + at, mine_.begin() + at + count);
        mine_ = kept;
        std::copy(share.begin(), share.end(), mine_.begin() + at);
      }
      for (std::size_t m = 0; m < n; ++m) reference.put(m, static_cast<std::int64_t>(m) * count, totals[m]);
      return;
    }
    default:
      return apply_exchange(group, kind, count);
  }
}

void Program::apply_exchange(Group& group, std::size_t kind, std::int64_t count) {
  Reference reference(expected_, group.members);
  Communicator* c = group.communicator.get();
  const std::size_t n = group.members.size();
  const std::int64_t whole = static_cast<std::int64_t>(n) * count;
  if (kind == 4) {  // all_gather in place
    std::vector<std::vector<float>> parts;
    for (std::size_t m = 0; m < n; ++m)
      parts.push_back(reference.part(m, static_cast<std::int64_t>(m) * count, count));
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t q = 0; q < n; ++q) reference.put(m, static_cast<std::int64_t>(q) * count, parts[q]);
    if (c) c->all_gather(own(0, whole), own(c->rank() * count, count)).wait();
  } else if (kind == 5) {  // all_to_all
    Memory before = expected_;
    const Reference old(before, group.members);
    for (std::size_t m = 0; m < n; ++m)
      for (std::size_t q = 0; q < n; ++q)
        reference.put(m, static_cast<std::int64_t>(q) * count,
                      old.part(q, static_cast<std::int64_t>(m) * count, count));
    if (!c) return;
    std::vector<float> in(mine_.begin(), mine_.begin() + whole);
    c->all_to_all(own(0, whole), Tensor(in.data(), DType::kF32, {whole})).wait();
  } else {  // a ring of messages
    Memory before = expected_;
    const Reference old(before, group.members);
    for (std::size_t m = 0; m < n; ++m) reference.put((m + 1) % n, 0, old.part(m, 0, count));
    if (!c || n == 1) return;
    std::vector<float> out(mine_.begin(), mine_.begin() + count);
    const int size = static_cast<int>(n);
    Work sent = c->send(Tensor(out.data(), DType::kF32, {count}), (c->rank() + 1) % size);
    c->recv(own(0, count), (c->rank() + size - 1) % size).wait();
    sent.wait();
  }
}

}  // namespace

void run_random_program(Communicator& world, int steps, unsigned seed) {
  Program program(world, seed);
  for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) program.step(i);
}

}  // namespace drivetrain::test
