#include "runtime/data/dataset.h"

#include <algorithm>
#include <optional>

#include "kernels/error.h"
#include "kernels/ops.h"
#include "runtime/data/cache_builder.h"
#include "runtime/data/source_files.h"

namespace drivetrain {
namespace {

// Fills [from, T) with padding: each a document of its own without a target.
void pad(const Sample& out, std::int64_t from) {
  const auto length = static_cast<std::int64_t>(out.ids.size());
  for (std::int64_t t = from; t < length; ++t) {
    const auto i = static_cast<std::size_t>(t);
    out.ids[i] = 0;
    out.targets[i] = Ops::kIgnore;
    out.positions[i] = 0;
    out.doc_starts[i] = static_cast<std::int32_t>(t);
  }
}

// What both ways of cutting the cache into samples share.
class CachedDataset : public Dataset {
 public:
  CachedDataset(TokenCache cache, std::int64_t seq_len, std::string counts)
      : cache_(std::move(cache)), ends_(cache_.document_ends()), seq_len_(seq_len), counts_(std::move(counts)) {}
  std::int64_t seq_len() const override { return seq_len_; }
  std::int64_t tokens() const override { return cache_.tokens(); }
  std::string report() const override {
    return counts_ + ", " + std::to_string(tokens()) + " tokens, " + std::to_string(size()) + " sequences of " +
           std::to_string(seq_len_);
  }

 protected:
  void check(std::int64_t index) const {
    if (index < 0 || index >= size()) {
      throw Error(ErrorKind::kLogic, "sample " + std::to_string(index) + " of " + std::to_string(size()));
    }
  }
  // ids[i] = token begin + i and targets[i] = the one after it, for i < count; the target of token tokens() - 1 is not set.
  void copy_shifted(std::int64_t begin, std::int64_t count, const Sample& out) const {
    const auto n = static_cast<std::size_t>(count);
    cache_.copy(begin, out.ids.first(n));
    std::copy(out.ids.begin() + 1, out.ids.begin() + count, out.targets.begin());
    if (begin + count < cache_.tokens()) cache_.copy(begin + count, out.targets.subspan(n - 1, 1));
  }

  const TokenCache cache_;
  const std::span<const std::uint64_t> ends_;
  const std::int64_t seq_len_;

 private:
  const std::string counts_;
};

// Sample i holds tokens [i T, i T + T) of all documents in a row; the last one may be partial.
class PackedDataset final : public CachedDataset {
 public:
  using CachedDataset::CachedDataset;
  // The very last token has no target, so a sample of it alone would be empty.
  std::int64_t size() const override { return (cache_.tokens() - 1 + seq_len_ - 1) / seq_len_; }

  void read(std::int64_t index, Sample out) const override {
    check(index);
    const std::int64_t begin = index * seq_len_, count = std::min(seq_len_, cache_.tokens() - begin);
    copy_shifted(begin, count, out);
    auto end = std::upper_bound(ends_.begin(), ends_.end(), static_cast<std::uint64_t>(begin));
    std::int64_t start = 0;
    for (std::int64_t t = 0; t < count; ++t) {
      const auto i = static_cast<std::size_t>(t);
      out.positions[i] = static_cast<std::int32_t>(t - start);
      out.doc_starts[i] = static_cast<std::int32_t>(start);
      if (begin + t + 1 == static_cast<std::int64_t>(*end)) {
        out.targets[i] = Ops::kIgnore;
        start = t + 1;
        ++end;
      }
    }
    pad(out, count);
  }

  std::int64_t target_count(std::int64_t index) const override {
    check(index);
    const std::int64_t begin = index * seq_len_, end = std::min(begin + seq_len_, cache_.tokens());
    const auto first = std::upper_bound(ends_.begin(), ends_.end(), static_cast<std::uint64_t>(begin));
    const auto last = std::upper_bound(first, ends_.end(), static_cast<std::uint64_t>(end));
    return end - begin - (last - first);
  }
};

// Sample i is document i, cut to T tokens and the target after them.
class DocumentDataset final : public CachedDataset {
 public:
  using CachedDataset::CachedDataset;
  std::int64_t size() const override { return cache_.documents(); }

  void read(std::int64_t index, Sample out) const override {
    check(index);
    const auto [begin, length] = document(index);
    const std::int64_t count = std::min(length, seq_len_);
    copy_shifted(begin, count, out);
    for (std::int64_t t = 0; t < count; ++t) {
      out.positions[static_cast<std::size_t>(t)] = static_cast<std::int32_t>(t);
      out.doc_starts[static_cast<std::size_t>(t)] = 0;
    }
    if (count == length) out.targets[static_cast<std::size_t>(count - 1)] = Ops::kIgnore;
    pad(out, count);
  }

  std::int64_t target_count(std::int64_t index) const override {
    check(index);
    return std::min(document(index).length - 1, seq_len_);
  }

  std::string report() const override {
    std::int64_t cut = 0;
    for (std::int64_t i = 0; i < size(); ++i) cut += document(i).length > seq_len_ + 1 ? 1 : 0;
    return CachedDataset::report() + (cut ? ", " + std::to_string(cut) + " cut to the sequence length" : "");
  }

 private:
  struct Range {
    std::int64_t begin, length;
  };
  Range document(std::int64_t index) const {
    const auto i = static_cast<std::size_t>(index);
    const auto begin = index == 0 ? 0 : static_cast<std::int64_t>(ends_[i - 1]);
    return {begin, static_cast<std::int64_t>(ends_[i]) - begin};
  }
};

std::string place(const std::vector<SourceFile>& files, const CacheStats::Place& at) {
  const auto index = static_cast<std::size_t>(at.file);
  const std::string path = index < files.size() ? files[index].path.string() : "?";
  return at.line > 0 ? path + ":" + std::to_string(at.line) : path;
}

std::string counts_of(const std::vector<SourceFile>& files, const CacheStats& stats) {
  std::string text = std::to_string(stats.records) + " records";
  if (stats.empty > 0) text += ", " + std::to_string(stats.empty) + " empty";
  if (stats.skipped > 0) {
    text += ", " + std::to_string(stats.skipped) + " skipped (";
    const auto shown = std::min(static_cast<std::size_t>(stats.skipped), CacheStats::kPlaces);
    for (std::size_t i = 0; i < shown; ++i) text += (i ? ", " : "") + place(files, stats.skipped_places[i]);
    text += static_cast<std::size_t>(stats.skipped) > shown ? ", ...)" : ")";
  }
  return text;
}

void check_vocabulary(const std::vector<SourceFile>& files, const CacheStats& stats, const Tokenizer& tokenizer,
                      std::int64_t vocab_rows) {
  if (stats.highest_id < vocab_rows) return;
  const auto id = static_cast<std::int32_t>(stats.highest_id);
  const std::string text = id < tokenizer.vocab_size() ? "token '" + tokenizer.token_text(id) + "'"
                                                       : std::string("token unknown to the tokenizer");
  throw Error(ErrorKind::kData,
              place(files, stats.highest_place) + ": " + text + " has id " + std::to_string(id) +
                  ", but the model's embedding has " + std::to_string(vocab_rows) +
                  " rows; use the tokenizer that belongs to the model, or a model whose embedding was "
                  "resized for its added tokens");
}

OnBadRecord on_bad_record(const std::string& on_error) {
  if (on_error == "stop") return OnBadRecord::kStop;
  if (on_error == "skip") return OnBadRecord::kSkip;
  throw Error(ErrorKind::kConfig, "data.on_error: '" + on_error + "': allowed are stop, skip");
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const DatasetOptions& options, const Tokenizer& tokenizer) {
  if (options.seq_len < 1) {
    throw Error(ErrorKind::kConfig, "data.seq_len: " + std::to_string(options.seq_len) + ": must be at least 1");
  }
  const auto files = find_source_files(options.files, options.format, options.token_dtype);
  TokenCache cache = open_token_cache(files, on_bad_record(options.on_error), tokenizer, options.cache_dir);
  const std::string counts = counts_of(files, cache.stats());
  const std::string first = files.size() == 1 ? files[0].path.string() : std::to_string(files.size()) + " data files";
  if (cache.documents() == 0) throw Error(ErrorKind::kData, first + ": nothing to train on: " + counts);
  if (cache.tokens() <= cache.documents()) {
    throw Error(ErrorKind::kData, first + ": no document has two tokens, so there is nothing to predict: " + counts);
  }
  check_vocabulary(files, cache.stats(), tokenizer, options.vocab_rows);
  if (options.packing) return std::make_unique<PackedDataset>(std::move(cache), options.seq_len, counts);
  return std::make_unique<DocumentDataset>(std::move(cache), options.seq_len, counts);
}

}  // namespace drivetrain
