#include <cstring>
#include <string_view>
#include <utility>

#include "kernels/error.h"
#include "runtime/checkpoint/file_io.h"
#include "runtime/checkpoint/hash.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/data/mapped_file.h"

namespace drivetrain {
namespace {

constexpr std::size_t kLengthBytes = 8;

SafetensorsHeader read_header(std::string_view bytes, const std::string& file) {
  const std::uint64_t file_bytes = bytes.size();
  if (file_bytes < kLengthBytes + 2)
    throw Error(ErrorKind::kData,
                file + " has only " + std::to_string(file_bytes) + " bytes: it is cut off or no safetensors file");
  if (bytes.starts_with("version https://git-lfs"))
    throw Error(ErrorKind::kData, file + " is a Git LFS pointer, not the weights: run `git lfs pull` in its folder");
  std::uint64_t header_bytes = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(bytes[i]);
  if (header_bytes > kMaxHeaderBytes)
    throw Error(ErrorKind::kData, file + ": a header of " + std::to_string(header_bytes) +
                                      " bytes is announced, the limit is " + std::to_string(kMaxHeaderBytes));
  if (header_bytes > file_bytes - kLengthBytes)
    throw Error(ErrorKind::kData, file + ": a header of " + std::to_string(header_bytes) +
                                      " bytes is announced, but the file has only " + std::to_string(file_bytes) +
                                      " bytes: it is cut off or no safetensors file");
  return parse_safetensors_header(bytes.substr(kLengthBytes, static_cast<std::size_t>(header_bytes)), file_bytes,
                                  file);
}

}  // namespace

std::size_t size_of(FileDType t) {
  switch (t) {
    case FileDType::kF64:
    case FileDType::kI64:
      return 8;
    case FileDType::kF32:
    case FileDType::kI32:
      return 4;
    case FileDType::kF16:
    case FileDType::kBF16:
    case FileDType::kI16:
      return 2;
    case FileDType::kI8:
    case FileDType::kU8:
    case FileDType::kBool:
      return 1;
  }
  throw Error(ErrorKind::kLogic, "unknown file dtype");
}

std::int64_t TensorEntry::count() const {
  return static_cast<std::int64_t>((end - begin) / size_of(dtype));
}

struct SafetensorsFile::Impl {
  explicit Impl(const std::filesystem::path& file)
      : path(file), mapped(file), header(read_header(mapped.bytes(), file.string())) {}
  std::filesystem::path path;
  MappedFile mapped;
  SafetensorsHeader header;
};

SafetensorsFile::SafetensorsFile(const std::filesystem::path& file) : impl_(std::make_unique<Impl>(file)) {}
SafetensorsFile::~SafetensorsFile() = default;

const std::filesystem::path& SafetensorsFile::path() const {
  return impl_->path;
}

const std::map<std::string, TensorEntry>& SafetensorsFile::tensors() const {
  return impl_->header.tensors;
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return impl_->header.metadata;
}

std::span<const std::byte> SafetensorsFile::bytes(const std::string& name) const {
  const auto found = impl_->header.tensors.find(name);
  if (found == impl_->header.tensors.end())
    throw Error(ErrorKind::kData, path().string() + " has no tensor " + in_quotes(name));
  return std::as_bytes(std::span(impl_->mapped.bytes()))
      .subspan(found->second.begin, found->second.end - found->second.begin);
}

void SafetensorsFile::release(std::uint64_t begin, std::uint64_t end) const {
  impl_->mapped.release(begin, end);
}

struct SafetensorsWriter::Impl {
  Impl(const std::filesystem::path& path, const std::string& header, std::uint64_t total)
      : file(path, total), total_bytes(total) {
    append(std::as_bytes(std::span(header)));
  }
  void append(std::span<const std::byte> bytes) {
    if (bytes.size() > total_bytes - file.written_bytes())
      throw Error(ErrorKind::kLogic, file.path().string() + ": more bytes than its tensors have");
    hasher.add(bytes);
    file.write(bytes);
  }
  OutputFile file;
  Hasher hasher;
  std::uint64_t total_bytes;
};

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& file, const std::vector<Declared>& tensors,
                                     const std::map<std::string, std::string>& metadata) {
  const std::string header = compose_safetensors_header(tensors, metadata);
  std::uint64_t total = header.size();
  for (const Declared& t : tensors) total += tensor_bytes(t.dtype, t.shape, in_quotes(t.name));
  impl_ = std::make_unique<Impl>(file, header, total);
}
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  impl_->append(bytes);
}

std::string SafetensorsWriter::finish() {
  if (impl_->file.written_bytes() != impl_->total_bytes)
    throw Error(ErrorKind::kLogic, impl_->file.path().string() + ": " + std::to_string(impl_->file.written_bytes()) +
                                       " bytes written of " + std::to_string(impl_->total_bytes));
  impl_->file.sync_and_close();
  return impl_->hasher.hex();
}

}  // namespace drivetrain
