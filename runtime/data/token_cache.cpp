#include "runtime/data/token_cache.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "kernels/error.h"
#include "runtime/data/token_cache_format.h"

namespace drivetrain {
namespace {

// The header, when the bytes are a whole cache of this version and key.
std::optional<CacheHeader> read_header(std::string_view bytes, const std::string& key) {
  CacheHeader header;
  if (bytes.size() < kCacheHeaderBytes) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kCacheMagic, sizeof header.magic) != 0 || header.version != kCacheVersion) {
    return std::nullopt;
  }
  const bool whole = header.checksum == header_checksum(header) && header.file_bytes == bytes.size() &&
                     (header.token_bytes == 2 || header.token_bytes == 4) &&
                     header.file_bytes == cache_file_bytes(header.tokens, header.token_bytes, header.documents);
  if (!whole || key.size() >= sizeof header.key || std::string_view(header.key) != key) return std::nullopt;
  return header;
}

}  // namespace

std::optional<TokenCache> TokenCache::open(const std::filesystem::path& path, const std::string& key) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  MappedFile file(path);
  const auto header = read_header(file.bytes(), key);
  if (!header) return std::nullopt;
  return TokenCache(std::move(file), header->stats, static_cast<std::int64_t>(header->tokens),
                    static_cast<int>(header->token_bytes), static_cast<std::int64_t>(header->documents));
}

TokenCache::TokenCache(MappedFile file, const CacheStats& stats, std::int64_t tokens, int token_bytes,
                       std::int64_t documents)
    : file_(std::move(file)), stats_(stats), tokens_(tokens), token_bytes_(token_bytes) {
  const std::size_t at =
      document_ends_at(static_cast<std::uint64_t>(tokens), static_cast<std::uint64_t>(token_bytes));
  ends_ = {reinterpret_cast<const std::uint64_t*>(file_.bytes().data() + at), static_cast<std::size_t>(documents)};
}

void TokenCache::copy(std::int64_t begin, std::span<std::int32_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  if (begin < 0 || begin + count > tokens_) {
    throw Error(ErrorKind::kLogic, "token cache: tokens [" + std::to_string(begin) + ", " +
                                       std::to_string(begin + count) + ") of " + std::to_string(tokens_));
  }
  const char* from = file_.bytes().data() + kCacheHeaderBytes;
  if (token_bytes_ == 2) {
    const auto* ids = reinterpret_cast<const std::uint16_t*>(from) + begin;
    std::copy(ids, ids + count, out.begin());
  } else {
    const auto* ids = reinterpret_cast<const std::int32_t*>(from) + begin;
    std::copy(ids, ids + count, out.begin());
  }
}

}  // namespace drivetrain
