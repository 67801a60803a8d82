// Samples of fixed length out of a memory-mapped token cache, and the order in which they are seen.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/data/tokenizer.h"

namespace drivetrain {

// One sequence of T tokens as host integers.
struct Sample {
  std::span<std::int32_t> ids, targets, positions, doc_starts;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;                            // samples
  virtual std::int64_t seq_len() const = 0;                         // T
  virtual std::int64_t tokens() const = 0;                          // in the cache
  virtual void read(std::int64_t index, Sample out) const = 0;      // thread-safe
  virtual std::int64_t target_count(std::int64_t index) const = 0;  // targets that are not ignored
  virtual std::string report() const = 0;  // "812 records, 3 skipped (file:line ...), 120331 tokens, 117 sequences"
};

struct DatasetOptions {
  std::vector<std::string> files;
  std::string format;  // auto | text | jsonl | tokens
  std::string token_dtype;
  std::string on_error;
  std::filesystem::path cache_dir;
  std::int64_t seq_len;
  bool packing;
  std::int64_t vocab_rows;  // rows of the model's embedding: an id beyond them is an error naming token and id
};
// Tokenises into the cache unless it is there already (keyed by content and tokenizer; written once, atomically; safe
// with many ranks at once on one host or a shared file system). Throws kData with file:line.
std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options, const Tokenizer& tokenizer);

// Permutation of [0, size) for (seed, epoch): the same on every rank and for every layout.
class SampleOrder {
 public:
  SampleOrder(std::int64_t size, std::uint64_t seed, bool shuffle);
  std::int64_t at(std::int64_t epoch, std::int64_t position) const;

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  bool shuffle_;
};

}  // namespace drivetrain
