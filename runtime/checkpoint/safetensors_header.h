// The JSON header of a safetensors file: parsed with every check that the format asks for, and composed. Touches no
// file; safetensors.h has the files. Source: huggingface/safetensors, README section "Format".
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/safetensors.h"

namespace drivetrain {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the reference reader's own limit

struct SafetensorsHeader {
  std::map<std::string, TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// text: the JSON, which starts at byte 8 of the file; file_bytes: the file's size; file: its name, for messages.
// Throws kData: not JSON, not UTF-8, duplicate or unknown fields, unknown dtype, size that overflows or does not match
// the byte range, ranges that overlap, leave holes or do not end with the file.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes, const std::string& file);

// Length (8 bytes, little-endian) and JSON, padded with spaces so that the data starts at a multiple of 64 bytes.
// Throws kLogic on duplicate names, kData when the header would exceed kMaxHeaderBytes.
std::string compose_safetensors_header(const std::vector<SafetensorsWriter::Declared>& tensors,
                                       const std::map<std::string, std::string>& metadata);

// Bytes of a tensor of this shape; throws kData starting with `what` when a dimension is negative or the product
// overflows.
std::uint64_t tensor_bytes(FileDType dtype, const std::vector<std::int64_t>& shape, const std::string& what);
// A name as messages show it: quoted, shortened when absurdly long.
std::string in_quotes(std::string_view name);
// "[2, 3]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace drivetrain
