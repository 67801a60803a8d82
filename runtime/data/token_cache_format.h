// The bytes of a token cache file, shared by its reader and its writer and by nobody else.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/data/token_cache.h"

namespace drivetrain {

inline constexpr char kCacheMagic[8] = {'D', 'T', 'T', 'O', 'K', 'E', 'N', 'S'};
inline constexpr std::uint32_t kCacheVersion = 1;
inline constexpr std::size_t kCacheHeaderBytes = 4096;

struct CacheHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t token_bytes = 0;
  std::uint64_t tokens = 0, documents = 0, file_bytes = 0;
  char key[128] = {};  // ends in 0
  CacheStats stats;
  std::uint64_t checksum = 0;  // of all before it
};
static_assert(sizeof(CacheHeader) <= kCacheHeaderBytes);

std::uint64_t header_checksum(const CacheHeader& header);

constexpr std::size_t document_ends_at(std::uint64_t tokens, std::uint64_t token_bytes) {
  return kCacheHeaderBytes + (tokens * token_bytes + 7) / 8 * 8;
}
constexpr std::size_t cache_file_bytes(std::uint64_t tokens, std::uint64_t token_bytes, std::uint64_t documents) {
  return document_ends_at(tokens, token_bytes) + documents * sizeof(std::uint64_t);
}

}  // namespace drivetrain
