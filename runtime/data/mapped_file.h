// A read-only memory map of a whole file. Knows nothing of what the bytes mean.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string_view>

namespace drivetrain {

class MappedFile {
 public:
  // Throws kData when the file is absent or not a regular file, kIo when the system refuses it.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  // Says that bytes before `offset` are not needed soon, so that a pass over a huge file stays small in memory.
  void release_before(std::size_t offset);
  // The same for bytes [begin, end), in any order.
  void release(std::size_t begin, std::size_t end) const;

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t released_ = 0;
};

}  // namespace drivetrain
