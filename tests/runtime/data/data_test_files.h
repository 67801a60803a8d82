// A folder of its own for a test, and short ways to put data files there and to read samples back.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/error.h"
#include "runtime/data/dataset.h"

namespace drivetrain::test {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "drivetrain-data-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path path() const { return path_; }
  std::string write(const std::string& name, std::string_view content) const {
    const auto path = path_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
    return path.string();
  }
  DatasetOptions options(std::vector<std::string> files, std::int64_t seq_len) const {
    return {.files = std::move(files),
            .format = "auto",
            .token_dtype = "u16",
            .on_error = "stop",
            .cache_dir = path_ / "cache",
            .seq_len = seq_len,
            .packing = true,
            .vocab_rows = 1 << 20};
  }

 private:
  std::filesystem::path path_;
};

using Ints = std::vector<std::int32_t>;

struct Row {
  Ints ids, targets, positions, doc_starts;
};

inline Row read_row(const Dataset& data, std::int64_t index) {
  const auto n = static_cast<std::size_t>(data.seq_len());
  Row row{Ints(n, -7), Ints(n, -7), Ints(n, -7), Ints(n, -7)};
  data.read(index, {row.ids, row.targets, row.positions, row.doc_starts});
  return row;
}

// The message of the Error that f throws; fails otherwise.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "(nothing thrown)";
}

}  // namespace drivetrain::test
