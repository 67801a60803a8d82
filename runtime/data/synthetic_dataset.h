// Samples made up on the spot: uniformly random ids, every sequence one document as long as it can be. For measuring speed
// without files; nothing can be learned from it but the vocabulary's size (loss ln V).
#pragma once
#include <memory>

#include "runtime/data/dataset.h"

namespace drivetrain {

struct SyntheticOptions {
  std::int64_t seq_len = 0;
  std::int64_t vocab = 0;  // ids in [0, vocab)
  std::int64_t samples = std::int64_t{1} << 20;
  std::uint64_t seed = 0;
};
// The same sample for the same index and seed, on every rank. Throws kLogic unless all sizes are at least 1.
std::unique_ptr<Dataset> make_synthetic_dataset(const SyntheticOptions& options);

}  // namespace drivetrain
