// A memory-mapped file of tokens and document ends, written once. Knows nothing of text, samples or ranks.
//
// Layout, little endian: header (4096 bytes) | tokens (u16 or u32) | padding to 8 | document ends (u64, one a document).
// A writer works in a file of its own and renames it when it is whole and on disk, so a reader never sees half of one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/mapped_file.h"

namespace drivetrain {

// What was seen while the cache was written.
struct CacheStats {
  static constexpr std::size_t kPlaces = 8;
  struct Place {
    std::int64_t file, line;  // index in the list of source files; line from 1
  };
  std::int64_t records = 0;            // documents with at least one token
  std::int64_t empty = 0;              // records without any
  std::int64_t skipped = 0;            // bad records passed over
  std::int64_t highest_id = -1;        // of all tokens
  Place highest_place{0, 0};           // file of the first token with that id; line 0
  Place skipped_places[kPlaces] = {};  // the first ones
};

class TokenCache {
 public:
  // Nothing when there is no file or it was not written whole by this version under this key. Throws kIo when the
  // system refuses an existing file.
  static std::optional<TokenCache> open(const std::filesystem::path& path, const std::string& key);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t documents() const { return static_cast<std::int64_t>(ends_.size()); }
  // Index after the last token of each document, ascending; the last one is tokens().
  std::span<const std::uint64_t> document_ends() const { return ends_; }
  const CacheStats& stats() const { return stats_; }
  // out = tokens [begin, begin + out.size()), which must lie inside the cache.
  void copy(std::int64_t begin, std::span<std::int32_t> out) const;

 private:
  TokenCache(MappedFile file, const CacheStats& stats, std::int64_t tokens, int token_bytes, std::int64_t documents);

  MappedFile file_;
  CacheStats stats_;
  std::int64_t tokens_;
  int token_bytes_;
  std::span<const std::uint64_t> ends_;
};

class TokenCacheWriter {
 public:
  // Writes beside `path` under a name of its own. token_bytes: 2 or 4. Throws kIo.
  TokenCacheWriter(const std::filesystem::path& path, std::string key, int token_bytes);
  ~TokenCacheWriter();  // without finish(): removes what was written
  TokenCacheWriter(const TokenCacheWriter&) = delete;
  TokenCacheWriter& operator=(const TokenCacheWriter&) = delete;

  void append(std::span<const std::int32_t> ids);  // throws kData for an id that does not fit
  void end_document();
  std::int64_t tokens() const { return tokens_; }
  std::int64_t highest_id() const { return highest_id_; }
  void finish(CacheStats stats);  // puts the file in its place
  // How the names of unfinished files of this host begin.
  static std::string temporary_prefix(const std::filesystem::path& path);

 private:
  class File;
  std::filesystem::path path_;
  std::string key_;
  int token_bytes_;
  std::int64_t tokens_ = 0, documents_ = 0, highest_id_ = -1;
  std::unique_ptr<File> data_, ends_;
};

}  // namespace drivetrain
