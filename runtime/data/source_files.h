// Turns what a user wrote under data.train into files with a known kind. Does not read them.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace drivetrain {

enum class SourceKind { kText, kJsonl, kTokensU16, kTokensU32 };

struct SourceFile {
  std::filesystem::path path;
  SourceKind kind;
};

// Entries are files, folders (every file inside, recursively) or globs. Inside a folder or glob: sorted by name, hidden
// files left out, several links to one file counted once. format: auto | text | jsonl | tokens; auto goes by the suffix:
// .jsonl .ndjson .json -> jsonl; .bin .tok .tokens .u16 .u32 -> tokens; any other -> text. token_dtype: u16 | u32, for
// tokens without .u16 or .u32. Throws kData for what matches nothing or is a container that cannot be read.
std::vector<SourceFile> find_source_files(const std::vector<std::string>& entries, const std::string& format,
                                          const std::string& token_dtype);

}  // namespace drivetrain
