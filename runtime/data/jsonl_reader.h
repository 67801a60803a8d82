// Reads the "text" of each record of a JSONL file. Knows nothing of tokens.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "runtime/data/mapped_file.h"

namespace drivetrain {

enum class OnBadRecord { kStop, kSkip };

struct JsonlSink {
  std::function<void(std::string_view text, std::int64_t line)> record;
  std::function<void(std::int64_t line)> skipped;  // kSkip only; lines count from 1
};

// One JSON object a line. Lines end in LF or CRLF, the last one may end in nothing; a byte order mark at the start and
// lines of white space are passed over. Escaped line ends inside a text are kept. A line of any length is one record.
// kStop: throws kData "file:line: ..." at the first line that is not an object with a string "text".
void read_jsonl(MappedFile& file, const std::filesystem::path& path, OnBadRecord on_bad, const JsonlSink& sink);

// Without a byte order mark; throws kData for UTF-16 and UTF-32.
std::string_view strip_byte_order_mark(std::string_view bytes, const std::filesystem::path& path);

}  // namespace drivetrain
