#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "kernels/error.h"
#include "runtime/data/token_cache.h"
#include "runtime/data/token_cache_format.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

}  // namespace

std::uint64_t header_checksum(const CacheHeader& header) {
  return XXH3_64bits(&header, offsetof(CacheHeader, checksum));
}

std::string TokenCacheWriter::temporary_prefix(const fs::path& path) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '-';
  return path.string() + ".tmp." + host.data() + ".";
}

// A file of this process: buffered writes, removed again unless kept.
class TokenCacheWriter::File {
 public:
  explicit File(const std::string& prefix) {
    std::string name = prefix + "XXXXXX";
    fd_ = ::mkostemp(name.data(), O_CLOEXEC);
    path_ = name;
    if (fd_ < 0) refuse("create");
    if (::fchmod(fd_, 0644) != 0) refuse("set the mode");
    buffer_.reserve(kBufferBytes);
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
    if (!kept_) ::unlink(path_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* data, std::size_t bytes) {
    if (buffer_.size() + bytes > kBufferBytes) flush();
    if (bytes > kBufferBytes) return write_through(static_cast<const char*>(data), bytes);
    const auto* from = static_cast<const char*>(data);
    buffer_.insert(buffer_.end(), from, from + bytes);
  }
  void flush() {
    write_through(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  void append_all_of(File& other) {
    other.flush();
    if (::lseek(other.fd_, 0, SEEK_SET) < 0) other.refuse("rewind");
    std::vector<char> chunk(kBufferBytes);
    while (const std::size_t got = other.read(chunk)) write(chunk.data(), got);
  }
  void overwrite_start(const void* data, std::size_t bytes) {
    flush();
    if (::pwrite(fd_, data, bytes, 0) != static_cast<ssize_t>(bytes)) refuse("write");
  }
  void move_to(const fs::path& target) {
    flush();
    if (::fsync(fd_) != 0) refuse("flush to disk");
    if (::close(std::exchange(fd_, -1)) != 0) refuse("close");
    if (::rename(path_.c_str(), target.c_str()) != 0) refuse("rename");
    kept_ = true;
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw Error(ErrorKind::kIo, path_.string() + ": cannot " + what + ": " + std::strerror(errno) +
                                    " (data.cache_dir names another place for the token cache)");
  }
  void write_through(const char* from, std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, from, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) refuse("write");
      from += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  std::size_t read(std::vector<char>& into) {
    for (;;) {
      const ssize_t n = ::read(fd_, into.data(), into.size());
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno != EINTR) refuse("read");
    }
  }

  fs::path path_;
  int fd_ = -1;
  bool kept_ = false;
  std::vector<char> buffer_;
};

TokenCacheWriter::TokenCacheWriter(const fs::path& path, std::string key, int token_bytes)
    : path_(path), key_(std::move(key)), token_bytes_(token_bytes) {
  if ((token_bytes != 2 && token_bytes != 4) || key_.size() >= sizeof CacheHeader::key) {
    throw Error(ErrorKind::kLogic, "token cache writer: bad token size or key");
  }
  data_ = std::make_unique<File>(temporary_prefix(path_));
  ends_ = std::make_unique<File>(temporary_prefix(path_));
  const std::array<char, kCacheHeaderBytes> room{};
  data_->write(room.data(), room.size());
}

TokenCacheWriter::~TokenCacheWriter() = default;

void TokenCacheWriter::append(std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    if (id < 0 || (token_bytes_ == 2 && id > 0xFFFF)) {
      throw Error(ErrorKind::kData, "token id " + std::to_string(id) + " does not fit into the token cache");
    }
    const auto narrow = static_cast<std::uint16_t>(id);
    if (token_bytes_ == 2) {
      data_->write(&narrow, sizeof narrow);
    } else {
      data_->write(&id, sizeof id);
    }
    if (id > highest_id_) highest_id_ = id;
  }
  tokens_ += static_cast<std::int64_t>(ids.size());
}

void TokenCacheWriter::end_document() {
  const auto end = static_cast<std::uint64_t>(tokens_);
  ends_->write(&end, sizeof end);
  ++documents_;
}

void TokenCacheWriter::finish(CacheStats stats) {
  const auto tokens = static_cast<std::uint64_t>(tokens_);
  const auto token_bytes = static_cast<std::uint64_t>(token_bytes_);
  const std::uint64_t zero = 0;
  data_->write(&zero, document_ends_at(tokens, token_bytes) - kCacheHeaderBytes - tokens * token_bytes);
  data_->append_all_of(*ends_);

  CacheHeader header;
  std::memset(static_cast<void*>(&header), 0, sizeof header);  // padding too: the checksum covers it
  std::memcpy(header.magic, kCacheMagic, sizeof header.magic);
  header.version = kCacheVersion;
  header.token_bytes = static_cast<std::uint32_t>(token_bytes_);
  header.tokens = tokens;
  header.documents = static_cast<std::uint64_t>(documents_);
  header.file_bytes = cache_file_bytes(tokens, token_bytes, header.documents);
  std::memcpy(header.key, key_.data(), key_.size());
  header.stats = stats;
  header.checksum = header_checksum(header);
  data_->overwrite_start(&header, sizeof header);
  data_->move_to(path_);
}

}  // namespace drivetrain
