#include "runtime/data/synthetic_dataset.h"

#include "kernels/error.h"

namespace drivetrain {
namespace {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t state) : state_(state) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

 private:
  std::uint64_t state_;
};

class SyntheticDataset final : public Dataset {
 public:
  explicit SyntheticDataset(const SyntheticOptions& options) : options_(options) {
    if (options.seq_len < 1 || options.vocab < 1 || options.samples < 1)
      throw Error(ErrorKind::kLogic, "synthetic data of " + std::to_string(options.samples) + " samples, " +
                                         std::to_string(options.seq_len) + " tokens, vocabulary " +
                                         std::to_string(options.vocab));
  }

  std::int64_t size() const override { return options_.samples; }
  std::int64_t seq_len() const override { return options_.seq_len; }
  std::int64_t tokens() const override { return options_.samples * options_.seq_len; }
  std::int64_t target_count(std::int64_t) const override { return options_.seq_len; }
  std::string report() const override {
    return "synthetic: random ids below " + std::to_string(options_.vocab) + ", one document of " +
           std::to_string(options_.seq_len) + " tokens a sequence";
  }

  void read(std::int64_t index, Sample out) const override {
    SplitMix random(SplitMix(options_.seed).next() ^ static_cast<std::uint64_t>(index));
    // The upper 32 bits times the vocabulary, upper half again: uniform to within vocab / 2^32.
    const auto id = [&] {
      return static_cast<std::int32_t>(((random.next() >> 32) * static_cast<std::uint64_t>(options_.vocab)) >> 32);
    };
    std::int32_t now = id();
    for (std::size_t t = 0; t < out.ids.size(); ++t) {
      out.ids[t] = now;
      out.targets[t] = now = id();
      out.positions[t] = static_cast<std::int32_t>(t);
      out.doc_starts[t] = 0;
    }
  }

 private:
  const SyntheticOptions options_;
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic_dataset(const SyntheticOptions& options) {
  return std::make_unique<SyntheticDataset>(options);
}

}  // namespace drivetrain
