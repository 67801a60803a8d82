// Which token ends a document.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/error.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/tokenizer_spec.h"

namespace drivetrain {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

std::optional<json> read_json(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  const MappedFile file(path);
  json value = json::parse(file.bytes(), nullptr, false);
  if (!value.is_object()) throw Error(ErrorKind::kData, path.string() + ": not a JSON object");
  return value;
}

std::int32_t id_of(const TokenizerSpec& spec, const std::string& token) {
  const auto added =
      std::find_if(spec.added.begin(), spec.added.end(), [&](const AddedToken& t) { return t.content == token; });
  if (added != spec.added.end()) return added->id;
  const auto known = spec.bpe.vocab.find(token);
  return known == spec.bpe.vocab.end() ? -1 : known->second;
}

// "eos_token" is a text or an object with "content".
std::optional<std::string> eos_token(const json& config) {
  const auto value = config.find("eos_token");
  if (value == config.end()) return std::nullopt;
  const json& token = value->is_object() && value->contains("content") ? (*value)["content"] : *value;
  return token.is_string() ? std::optional(token.get<std::string>()) : std::nullopt;
}

// "eos_token_id" is a number or a list of them, the first of which counts.
std::int32_t eos_token_id(const json& config) {
  const auto value = config.find("eos_token_id");
  if (value == config.end()) return -1;
  const json& id = value->is_array() && !value->empty() ? (*value)[0] : *value;
  const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() < (std::uint64_t{1} << 31);
  return fits ? id.get<std::int32_t>() : -1;
}

}  // namespace

std::int32_t find_end_of_text(const fs::path& folder, const TokenizerSpec& spec) {
  const fs::path tokenizer_config = folder / "tokenizer_config.json";
  if (const auto config = read_json(tokenizer_config)) {
    if (const auto token = eos_token(*config)) {
      const std::int32_t id = id_of(spec, *token);
      if (id < 0) {
        throw Error(ErrorKind::kData,
                    tokenizer_config.string() + ": eos_token '" + *token + "' is not a token of tokenizer.json");
      }
      return id;
    }
  }
  if (const auto config = read_json(folder / "config.json")) {
    if (const std::int32_t id = eos_token_id(*config); id >= 0) return id;
  }
  for (const char* name : std::array{"<|endoftext|>", "<|end_of_text|>", "</s>", "<|im_end|>"}) {
    const auto named =
        std::find_if(spec.added.begin(), spec.added.end(), [&](const AddedToken& t) { return t.content == name; });
    if (named != spec.added.end()) return named->id;
  }
  return -1;
}

}  // namespace drivetrain
