// Reading and writing safetensors files. The reader trusts nothing: header length, JSON, shapes, dtypes and byte
// ranges are checked before any tensor is touched (format: huggingface/safetensors, README "Format").
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace drivetrain {

enum class FileDType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };
std::size_t size_of(FileDType t);

struct TensorEntry {
  FileDType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  // bytes, from the start of the file
  std::int64_t count() const;
};

// One file, memory-mapped. Throws kData / kIo naming the file, and the tensor where there is one.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& file);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const;
  const std::map<std::string, TensorEntry>& tensors() const;
  const std::map<std::string, std::string>& metadata() const;
  std::span<const std::byte> bytes(const std::string& name) const;
  // Says that these bytes of the file are not needed soon: they leave the process's resident memory, not its view.
  void release(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A set of named tensors, as one file or a sharded folder with index (`model.safetensors[.index.json]`, the first wins).
// A shard's name must be a plain name in the folder (checked before anything is opened; a symbolic link of such a name is
// the owner's arrangement and is followed). A shard or tensor that the index names must exist.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual std::vector<std::string> names() const = 0;
  virtual const TensorEntry* find(const std::string& name) const = 0;  // null if absent
  // Elements [begin, begin + out.size()) of the flattened tensor, converted exactly to float (F64 rounds to nearest).
  // Throws kData naming file, tensor and element for an integer or F64 that float cannot hold.
  virtual void read(const std::string& name, std::int64_t begin, std::span<float> out) const = 0;
  virtual std::string where(const std::string& name) const = 0;  // file, for messages
  // Says that the tensor is not needed soon, so that reading a large file stays small in memory. It stays readable.
  virtual void release(const std::string& name) const = 0;
};
std::unique_ptr<TensorSource> open_tensor_folder(const std::filesystem::path& folder);
std::unique_ptr<TensorSource> open_tensor_files(const std::vector<std::filesystem::path>& files);
// The same tensors under other names: `rename` maps a stored name to the name to be found under, "" hides it.
std::unique_ptr<TensorSource> rename_tensors(std::unique_ptr<TensorSource> source,
                                             const std::map<std::string, std::string>& rename);

// Streams tensors into one file in the order declared. finish() fsyncs; a writer destroyed before that removes nothing
// (the caller owns the temporary folder). Every write is checked; a full disk throws kIo naming the file.
class SafetensorsWriter {
 public:
  struct Declared {
    std::string name;
    FileDType dtype;
    std::vector<std::int64_t> shape;
  };
  SafetensorsWriter(const std::filesystem::path& file, const std::vector<Declared>& tensors,
                    const std::map<std::string, std::string>& metadata);
  ~SafetensorsWriter();
  void append(std::span<const std::byte> bytes);  // of the tensors, back to back
  std::string finish();                           // hex XXH3-128 of the whole file

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drivetrain
