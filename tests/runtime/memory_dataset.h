// A data set in memory: `size` samples of `seq` tokens that follow a rule a model can learn; some may have no targets.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/ops.h"
#include "runtime/data/dataset.h"

namespace drivetrain::test {

class MemoryDataset final : public Dataset {
 public:
  // targets(sample): how many of its tokens (from the front) have a loss.
  MemoryDataset(std::int64_t size, std::int64_t seq, std::int64_t vocab,
                std::function<std::int64_t(std::int64_t)> targets)
      : size_(size), seq_(seq), vocab_(vocab), targets_(std::move(targets)) {}
  MemoryDataset(std::int64_t size, std::int64_t seq, std::int64_t vocab)
      : MemoryDataset(size, seq, vocab, [seq](std::int64_t) { return seq; }) {}

  std::int64_t size() const override { return size_; }
  std::int64_t seq_len() const override { return seq_; }
  std::int64_t tokens() const override { return size_ * seq_; }
  std::int64_t target_count(std::int64_t index) const override { return targets_(index); }
  std::string report() const override { return "in memory"; }
  void read(std::int64_t index, Sample out) const override {
    for (std::int64_t t = 0; t < seq_; ++t) {
      const auto i = static_cast<std::size_t>(t);
      out.ids[i] = token(index, t);
      out.targets[i] = t < targets_(index) ? token(index, t + 1) : Ops::kIgnore;
      out.positions[i] = static_cast<std::int32_t>(t);
      out.doc_starts[i] = 0;
    }
  }

 private:
  std::int32_t token(std::int64_t index, std::int64_t t) const {
    return static_cast<std::int32_t>((index * 7 + t * (1 + index % 3)) % vocab_);
  }
  std::int64_t size_, seq_, vocab_;
  std::function<std::int64_t(std::int64_t)> targets_;
};

}  // namespace drivetrain::test
