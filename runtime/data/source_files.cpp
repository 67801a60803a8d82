#include "runtime/data/source_files.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <set>

#include "kernels/error.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

bool hidden(const fs::path& path) {
  return path.filename().string().starts_with(".");
}

std::vector<fs::path> files_of_folder(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  while (!error && it != end) {
    const fs::path path = it->path();
    if (hidden(path)) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file(error)) {
      found.push_back(path);
    }
    error.clear();  // a dangling link is not a file
    it.increment(error);
  }
  if (error) throw Error(ErrorKind::kIo, folder.string() + ": cannot list the folder: " + error.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> matches_of_glob(const std::string& pattern) {
  glob_t result{};
  const int rc = ::glob(pattern.c_str(), 0, nullptr, &result);
  std::vector<fs::path> found;
  if (rc == 0) found.assign(result.gl_pathv, result.gl_pathv + result.gl_pathc);
  ::globfree(&result);
  if (rc != 0 && rc != GLOB_NOMATCH) throw Error(ErrorKind::kIo, pattern + ": cannot expand the pattern");
  return found;
}

void append_unique(std::vector<fs::path>& out, std::set<fs::path>& seen, const std::vector<fs::path>& paths) {
  for (const fs::path& path : paths) {
    if (seen.insert(fs::canonical(path)).second) out.push_back(path);
  }
}

std::vector<fs::path> expand(const std::string& entry) {
  std::vector<fs::path> out;
  std::set<fs::path> seen;
  if (fs::is_regular_file(entry)) {
    out.push_back(entry);
  } else if (fs::is_directory(entry)) {
    append_unique(out, seen, files_of_folder(entry));
    if (out.empty()) throw Error(ErrorKind::kData, entry + ": the folder holds no files");
  } else if (!fs::exists(entry)) {
    for (const fs::path& match : matches_of_glob(entry)) {
      append_unique(out, seen, fs::is_directory(match) ? files_of_folder(match) : std::vector{match});
    }
    if (out.empty()) {
      throw Error(ErrorKind::kData,
                  "data file '" + entry + "': no such file or folder, and as a pattern it matches nothing");
    }
  } else {
    throw Error(ErrorKind::kData, entry + ": not a regular file or folder");
  }
  return out;
}

std::string lower_suffix(const fs::path& path) {
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  return suffix;
}

template <std::size_t N>
bool one_of(const std::string& text, const std::array<const char*, N>& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

SourceKind tokens_kind(const fs::path& path, const std::string& token_dtype) {
  const std::string suffix = lower_suffix(path);
  if (suffix == ".u16") return SourceKind::kTokensU16;
  if (suffix == ".u32") return SourceKind::kTokensU32;
  if (token_dtype == "u16") return SourceKind::kTokensU16;
  if (token_dtype == "u32") return SourceKind::kTokensU32;
  throw Error(ErrorKind::kConfig, "data.token_dtype: '" + token_dtype + "': allowed are u16, u32");
}

SourceKind kind_of(const fs::path& path, const std::string& format, const std::string& token_dtype) {
  if (format == "text") return SourceKind::kText;
  if (format == "jsonl") return SourceKind::kJsonl;
  if (format == "tokens") return tokens_kind(path, token_dtype);
  if (format != "auto") {
    throw Error(ErrorKind::kConfig, "data.format: '" + format + "': allowed are auto, text, jsonl, tokens");
  }
  const std::string suffix = lower_suffix(path);
  if (one_of(suffix, std::array{".jsonl", ".ndjson", ".json"})) return SourceKind::kJsonl;
  if (one_of(suffix, std::array{".bin", ".tok", ".tokens", ".u16", ".u32"})) return tokens_kind(path, token_dtype);
  if (one_of(suffix, std::array{".gz", ".zst", ".xz", ".bz2", ".zip", ".tar", ".parquet", ".arrow", ".npy"})) {
    throw Error(ErrorKind::kData, path.string() + ": " + suffix +
                                      " files are not read; unpack or convert to .txt or .jsonl, or set data.format");
  }
  return SourceKind::kText;
}

}  // namespace

std::vector<SourceFile> find_source_files(const std::vector<std::string>& entries, const std::string& format,
                                          const std::string& token_dtype) {
  if (entries.empty()) throw Error(ErrorKind::kData, "no data files are given (data.train or data.eval is empty)");
  std::vector<SourceFile> files;
  for (const std::string& entry : entries) {
    for (const fs::path& path : expand(entry)) files.push_back({path, kind_of(path, format, token_dtype)});
  }
  return files;
}

}  // namespace drivetrain
