#include "runtime/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::size_t kReleaseBytes = std::size_t{8} << 20;

[[noreturn]] void refuse(const std::filesystem::path& path, const char* what, int code) {
  const auto kind = code == ENOENT || code == ENOTDIR ? ErrorKind::kData : ErrorKind::kIo;
  throw Error(kind, path.string() + ": cannot " + what + ": " + std::strerror(code));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO in place of the file is refused, not waited for.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) refuse(path, "open", errno);
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    const int code = errno;
    ::close(fd);
    refuse(path, "stat", code);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    throw Error(ErrorKind::kData, path.string() + ": not a regular file");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ > 0) {
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    const int code = errno;
    if (data_ == MAP_FAILED) {
      ::close(fd);
      refuse(path, "map", code);
    }
  }
  ::close(fd);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      released_(std::exchange(other.released_, 0)) {}

void MappedFile::release_before(std::size_t offset) {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = offset / page * page;
  if (end < released_ + kReleaseBytes || end > size_) return;
  // Only advice: the bytes stay readable, so a refusal changes nothing but memory use.
  ::madvise(static_cast<char*>(data_) + released_, end - released_, MADV_DONTNEED);
  released_ = end;
}

void MappedFile::release(std::size_t begin, std::size_t end) const {
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = (begin + page - 1) / page * page, last = std::min(end, size_) / page * page;
  if (first < last) ::madvise(static_cast<char*>(data_) + first, last - first, MADV_DONTNEED);
}

}  // namespace drivetrain
