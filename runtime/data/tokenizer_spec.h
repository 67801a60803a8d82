// What a tokenizer.json says, as plain data. Only features that are supported can be said here.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace drivetrain {

enum class NormalStep { kNfc, kNfd, kNfkc, kNfkd, kLowercase };

// What becomes of the pieces between and in the matches of a pattern.
enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct SplitStep {
  enum class Kind { kPattern, kDigits, kPrefixSpace } kind;
  std::string pattern;  // kPattern: for Regex
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // kPattern: the pattern describes what lies between the matches
};

struct AddedToken {
  std::int32_t id;
  std::string content;
  bool single_word, lstrip, rstrip, normalized, special;
};

struct BpeSpec {
  std::unordered_map<std::string, std::int32_t> vocab;  // in the byte alphabet
  std::vector<std::pair<std::string, std::string>> merges;
  bool ignore_merges = false;
  std::optional<std::string> unk_token;
  bool fuse_unk = false;
};

struct TokenizerSpec {
  std::vector<NormalStep> normal_steps;
  std::vector<SplitStep> split_steps;
  std::vector<AddedToken> added;
  BpeSpec bpe;
};

// json: content of a tokenizer.json; name: how errors call it. Throws kData "name: ..." for what is malformed and, by
// its name, for what is not supported. Padding, truncation, post-processor and decoder of the file do not take part.
TokenizerSpec parse_tokenizer_json(std::string_view json, const std::string& name);

// The token that ends a document: "eos_token" of tokenizer_config.json in the folder, else "eos_token_id" of
// config.json there, else the first known name among the added tokens; -1 when there is none.
std::int32_t find_end_of_text(const std::filesystem::path& folder, const TokenizerSpec& spec);

}  // namespace drivetrain
