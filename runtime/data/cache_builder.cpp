#include "runtime/data/cache_builder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "kernels/error.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHashChunkBytes = std::size_t{4} << 20;
// Part of the key: raise it when the same bytes should give other tokens.
constexpr const char* kReaderVersion = "reader-1";

class Hash {
 public:
  Hash() : state_(XXH3_createState()) {
    if (!state_ || XXH3_128bits_reset(state_.get()) != XXH_OK) throw Error(ErrorKind::kMemory, "no memory to hash");
  }
  void add(std::string_view bytes) { XXH3_128bits_update(state_.get(), bytes.data(), bytes.size()); }
  void add_field(std::string_view text) {
    add(std::to_string(text.size()));
    add(":");
    add(text);
  }
  std::string hex() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const unsigned char byte : canonical.digest) {
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
    return text;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

std::string key_of(const std::vector<SourceFile>& files, OnBadRecord on_bad, const Tokenizer& tokenizer) {
  Hash hash;
  hash.add_field(kReaderVersion);
  hash.add_field(tokenizer.fingerprint());
  hash.add_field(std::to_string(tokenizer.end_of_text()));
  hash.add_field(on_bad == OnBadRecord::kSkip ? "skip" : "stop");
  for (const SourceFile& source : files) {
    MappedFile file(source.path);
    const std::string_view bytes = file.bytes();
    hash.add_field(std::to_string(static_cast<int>(source.kind)) + " " + std::to_string(bytes.size()));
    for (std::size_t at = 0; at < bytes.size(); at += kHashChunkBytes) {
      hash.add(bytes.substr(at, kHashChunkBytes));
      file.release_before(at);
    }
  }
  return hash.hex();
}

// An exclusive lock while it lives. held() is false where the file system has none.
class FileLock {
 public:
  explicit FileLock(const fs::path& path) {
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) {
      throw Error(ErrorKind::kIo, path.string() + ": cannot create: " + std::strerror(errno) +
                                      " (data.cache_dir names another place for the token cache)");
    }
    int rc;
    do {
      rc = ::flock(fd_, LOCK_EX);
    } while (rc != 0 && errno == EINTR);
    held_ = rc == 0;
  }
  ~FileLock() { ::close(fd_); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return held_; }

 private:
  int fd_ = -1;
  bool held_ = false;
};

// Files that a killed writer of this host left; only the holder of the lock may do this.
void remove_leftovers(const fs::path& path) {
  const std::string prefix = fs::path(TokenCacheWriter::temporary_prefix(path)).filename().string();
  std::error_code ignored;
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(path.parent_path(), ignored)) {
    if (entry.path().filename().string().starts_with(prefix)) stale.push_back(entry.path());
  }
  for (const fs::path& file : stale) fs::remove(file, ignored);
}

class Builder {
 public:
  Builder(const std::vector<SourceFile>& files, OnBadRecord on_bad, const Tokenizer& tokenizer,
          TokenCacheWriter& writer)
      : files_(files), on_bad_(on_bad), tokenizer_(tokenizer), writer_(writer) {}

  CacheStats run() {
    for (index_ = 0; index_ < files_.size(); ++index_) {
      MappedFile file(files_[index_].path);
      switch (files_[index_].kind) {
        case SourceKind::kText:
          add_text(strip_byte_order_mark(file.bytes(), files_[index_].path), 0);
          break;
        case SourceKind::kJsonl:
          add_jsonl(file);
          break;
        case SourceKind::kTokensU16:
          add_tokens<std::uint16_t>(file);
          break;
        case SourceKind::kTokensU32:
          add_tokens<std::uint32_t>(file);
          break;
      }
    }
    return stats_;
  }

 private:
  void add_ids(std::span<const std::int32_t> ids, std::int64_t line) {
    writer_.append(ids);
    if (writer_.highest_id() > stats_.highest_id) {
      stats_.highest_id = writer_.highest_id();
      stats_.highest_place = {static_cast<std::int64_t>(index_), line};
    }
  }

  void add_text(std::string_view text, std::int64_t line) {
    const std::int64_t before = writer_.tokens();
    tokenizer_.encode_to(text, [&](std::span<const std::int32_t> ids) { add_ids(ids, line); });
    if (writer_.tokens() == before) {
      ++stats_.empty;
      return;
    }
    const std::int32_t end = tokenizer_.end_of_text();
    if (end >= 0) add_ids({&end, 1}, line);
    writer_.end_document();
    ++stats_.records;
  }

  void add_jsonl(MappedFile& file) {
    JsonlSink sink;
    sink.record = [&](std::string_view text, std::int64_t line) { add_text(text, line); };
    sink.skipped = [&](std::int64_t line) {
      if (static_cast<std::size_t>(stats_.skipped) < CacheStats::kPlaces) {
        stats_.skipped_places[stats_.skipped] = {static_cast<std::int64_t>(index_), line};
      }
      ++stats_.skipped;
    };
    read_jsonl(file, files_[index_].path, on_bad_, sink);
  }

  template <class Word>
  void add_tokens(MappedFile& file) {
    const std::string_view bytes = file.bytes();
    if (bytes.size() % sizeof(Word) != 0) {
      throw Error(ErrorKind::kData, files_[index_].path.string() + ": " + std::to_string(bytes.size()) +
                                        " bytes are no whole number of u" + std::to_string(8 * sizeof(Word)) +
                                        " tokens (data.token_dtype)");
    }
    std::vector<std::int32_t> ids;
    bool open = false;
    for (std::size_t at = 0; at < bytes.size(); at += kHashChunkBytes) {
      const std::string_view chunk = bytes.substr(at, kHashChunkBytes);
      ids.resize(chunk.size() / sizeof(Word));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        Word word;
        std::memcpy(&word, chunk.data() + i * sizeof(Word), sizeof word);
        ids[i] = static_cast<std::int32_t>(word);
      }
      open = add_cut(ids, open);
      file.release_before(at);
    }
    if (open) end_tokens_document();
  }

  // Adds ids, ending a document after each end_of_text(). Returns whether one is still open.
  bool add_cut(std::span<const std::int32_t> ids, bool open) {
    while (!ids.empty()) {
      const auto end = std::find(ids.begin(), ids.end(), tokenizer_.end_of_text());
      const bool ends = end != ids.end();
      const auto count = static_cast<std::size_t>(end - ids.begin()) + (ends ? 1 : 0);
      add_ids(ids.first(count), 0);
      ids = ids.subspan(count);
      open = !ends;
      if (ends) end_tokens_document();
    }
    return open;
  }

  void end_tokens_document() {
    writer_.end_document();
    ++stats_.records;
  }

  const std::vector<SourceFile>& files_;
  const OnBadRecord on_bad_;
  const Tokenizer& tokenizer_;
  TokenCacheWriter& writer_;
  std::size_t index_ = 0;
  CacheStats stats_;
};

int token_bytes_for(const std::vector<SourceFile>& files, const Tokenizer& tokenizer) {
  for (const SourceFile& file : files) {
    const bool text = file.kind == SourceKind::kText || file.kind == SourceKind::kJsonl;
    if (file.kind == SourceKind::kTokensU32 || (text && tokenizer.vocab_size() > 0x10000)) return 4;
  }
  return 2;
}

}  // namespace

TokenCache open_token_cache(const std::vector<SourceFile>& files, OnBadRecord on_bad, const Tokenizer& tokenizer,
                            const fs::path& cache_dir) {
  const std::string key = key_of(files, on_bad, tokenizer);
  const fs::path path = cache_dir / ("tokens-" + key + ".bin");
  if (auto cache = TokenCache::open(path, key)) return std::move(*cache);

  std::error_code error;
  fs::create_directories(cache_dir, error);
  if (error) {
    throw Error(ErrorKind::kIo, cache_dir.string() + ": cannot create the folder: " + error.message() +
                                    " (data.cache_dir names another place for the token cache)");
  }
  const FileLock lock(fs::path(path).replace_extension(".lock"));
  if (auto cache = TokenCache::open(path, key)) return std::move(*cache);
  if (lock.held()) remove_leftovers(path);
  {
    TokenCacheWriter writer(path, key, token_bytes_for(files, tokenizer));
    writer.finish(Builder(files, on_bad, tokenizer, writer).run());
  }
  auto cache = TokenCache::open(path, key);
  if (!cache) throw Error(ErrorKind::kIo, path.string() + ": the token cache just written cannot be read back");
  return std::move(*cache);
}

}  // namespace drivetrain
