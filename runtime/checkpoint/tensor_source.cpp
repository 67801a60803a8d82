#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "kernels/error.h"
#include "runtime/checkpoint/file_io.h"
#include "runtime/checkpoint/float_convert.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace drivetrain {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

class FileSet final : public TensorSource {
 public:
  std::size_t add_file(const fs::path& file) {
    files_.push_back(std::make_unique<SafetensorsFile>(file));
    return files_.size() - 1;
  }
  const SafetensorsFile& file(std::size_t i) const { return *files_[i]; }

  void add_tensor(const std::string& name, std::size_t file_index) {
    const SafetensorsFile& file = *files_[file_index];
    const auto found = file.tensors().find(name);
    if (found == file.tensors().end())
      throw Error(ErrorKind::kData, file.path().string() + " has no tensor " + in_quotes(name) +
                                        ", although the index of its folder says so");
    const auto [place, inserted] = tensors_.try_emplace(name, Located{&file, &found->second});
    if (!inserted)
      throw Error(ErrorKind::kData, "the tensor " + in_quotes(name) + " is in both " +
                                        place->second.file->path().string() + " and " + file.path().string());
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, located] : tensors_) out.push_back(name);
    return out;
  }

  const TensorEntry* find(const std::string& name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : found->second.entry;
  }

  void read(const std::string& name, std::int64_t begin, std::span<float> out) const override {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) throw Error(ErrorKind::kData, "there is no tensor " + in_quotes(name) + " to read");
    const auto& [file, entry] = found->second;
    const auto count = static_cast<std::int64_t>(out.size());
    if (begin < 0 || begin > entry->count() || count > entry->count() - begin)
      throw Error(ErrorKind::kLogic, "elements [" + std::to_string(begin) + ", " + std::to_string(begin + count) +
                                         ") are outside " + in_quotes(name) + " " + shape_text(entry->shape));
    for (std::int64_t at = 0; at < count; at += kPortion)
      read_portion(
          name, found->second, begin + at,
          out.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(std::min(kPortion, count - at))));
  }

  std::string where(const std::string& name) const override {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? "no file" : found->second.file->path().string();
  }

  void release(const std::string& name) const override {
    const auto found = tensors_.find(name);
    if (found != tensors_.end()) found->second.file->release(found->second.entry->begin, found->second.entry->end);
  }

 private:
  static constexpr std::int64_t kPortion = std::int64_t{1} << 20;  // elements

  struct Located {
    const SafetensorsFile* file;
    const TensorEntry* entry;
  };

  // Full portions are released at once: a large tensor read in one call must not become resident beside its copy.
  static void read_portion(const std::string& name, const Located& located, std::int64_t begin,
                           std::span<float> out) {
    const auto& [file, entry] = located;
    const std::size_t width = size_of(entry->dtype);
    const std::size_t at = static_cast<std::size_t>(begin) * width, bytes = out.size() * width;
    if (const auto bad = to_floats(out, entry->dtype, file->bytes(name).subspan(at, bytes)))
      throw Error(ErrorKind::kData, file->path().string() + ": element " +
                                        std::to_string(begin + static_cast<std::int64_t>(*bad)) + " of " +
                                        in_quotes(name) + " cannot be represented as a 32-bit float");
    if (static_cast<std::int64_t>(out.size()) == kPortion)
      file->release(entry->begin + at, entry->begin + at + bytes);
  }

  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Located> tensors_;
};

class Renamed final : public TensorSource {
 public:
  Renamed(std::unique_ptr<TensorSource> source, const std::map<std::string, std::string>& rename)
      : source_(std::move(source)) {
    for (const std::string& stored : source_->names()) {
      const auto other = rename.find(stored);
      const std::string& visible = other == rename.end() ? stored : other->second;
      if (!visible.empty() && !stored_names_.try_emplace(visible, stored).second)
        throw Error(ErrorKind::kData, "two tensors would be named " + in_quotes(visible) + ", one of them " +
                                          in_quotes(stored) + " of " + source_->where(stored));
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [visible, stored] : stored_names_) out.push_back(visible);
    return out;
  }

  const TensorEntry* find(const std::string& name) const override {
    const auto found = stored_names_.find(name);
    return found == stored_names_.end() ? nullptr : source_->find(found->second);
  }

  void read(const std::string& name, std::int64_t begin, std::span<float> out) const override {
    const auto found = stored_names_.find(name);
    if (found == stored_names_.end())
      throw Error(ErrorKind::kData, "there is no tensor " + in_quotes(name) + " to read");
    source_->read(found->second, begin, out);
  }

  std::string where(const std::string& name) const override {
    const auto found = stored_names_.find(name);
    return found == stored_names_.end() ? "no file" : source_->where(found->second);
  }

  void release(const std::string& name) const override {
    const auto found = stored_names_.find(name);
    if (found != stored_names_.end()) source_->release(found->second);
  }

 private:
  std::unique_ptr<TensorSource> source_;
  std::map<std::string, std::string> stored_names_;  // visible -> stored
};

// Tensor -> shard, as the index says; every shard name is checked here, before any of them is opened.
std::map<std::string, std::string> read_index(const fs::path& index) {
  constexpr std::uint64_t kMaxIndexBytes = 100u << 20;
  const std::string text = read_text_file(index, kMaxIndexBytes);
  std::map<std::string, std::string> out;
  try {
    out = Json::parse(text).at("weight_map").get<std::map<std::string, std::string>>();
  } catch (const Json::exception& e) {
    throw Error(ErrorKind::kData, index.string() + " is no index of safetensors files: " + e.what());
  }
  for (const auto& [tensor, shard] : out) {
    if (!is_plain_file_name(shard))
      throw Error(ErrorKind::kData, index.string() + ": the file name " + in_quotes(shard) + " of tensor " +
                                        in_quotes(tensor) +
                                        " is refused: it must be a plain name in the same folder");
  }
  return out;
}

void require_shards(const fs::path& folder, const std::map<std::string, std::string>& index) {
  std::set<std::string> missing;
  for (const auto& [tensor, shard] : index) {
    std::error_code ignored;
    if (!fs::exists(folder / shard, ignored)) missing.insert(shard);
  }
  if (missing.empty()) return;
  std::string text = (folder / kIndexFile).string() + " names files that are not in the folder:";
  for (const std::string& shard : missing) text += " " + shard;
  throw Error(ErrorKind::kData, text + " (incomplete download?)");
}

std::unique_ptr<TensorSource> open_sharded(const fs::path& folder) {
  const std::map<std::string, std::string> index = read_index(folder / kIndexFile);
  require_shards(folder, index);
  auto set = std::make_unique<FileSet>();
  std::map<std::string, std::size_t> opened;
  for (const auto& [tensor, shard] : index) {
    auto file = opened.find(shard);
    if (file == opened.end()) file = opened.emplace(shard, set->add_file(folder / shard)).first;
    set->add_tensor(tensor, file->second);
  }
  return set;
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::string others, pickled;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (extension == ".safetensors") others += " " + name;
    if (extension == ".bin" || extension == ".pt" || extension == ".pth") pickled += " " + name;
  }
  std::string text = folder.string() + " has neither " + kSingleFile + " nor " + kIndexFile;
  if (!others.empty()) text += "; there is" + others + ": rename a single file to " + kSingleFile;
  if (others.empty() && !pickled.empty())
    text += "; it holds PyTorch pickle files (" + pickled.substr(1) +
            "), which are not read because they can run code: convert them with transformers' "
            "save_pretrained(safe_serialization=True)";
  throw Error(ErrorKind::kData, text);
}

}  // namespace

std::unique_ptr<TensorSource> open_tensor_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw Error(ErrorKind::kData, folder.string() + " is not a folder; expected one with " + kSingleFile);
  if (fs::exists(folder / kSingleFile, error)) return open_tensor_files({folder / kSingleFile});
  if (fs::exists(folder / kIndexFile, error)) return open_sharded(folder);
  refuse_folder(folder);
}

std::unique_ptr<TensorSource> open_tensor_files(const std::vector<fs::path>& files) {
  auto set = std::make_unique<FileSet>();
  for (const fs::path& path : files) {
    const std::size_t i = set->add_file(path);
    for (const auto& [name, entry] : set->file(i).tensors()) set->add_tensor(name, i);
  }
  return set;
}

std::unique_ptr<TensorSource> rename_tensors(std::unique_ptr<TensorSource> source,
                                             const std::map<std::string, std::string>& rename) {
  return std::make_unique<Renamed>(std::move(source), rename);
}

}  // namespace drivetrain
