// Reads tokenizer.json into a TokenizerSpec.
#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>

#include "kernels/error.h"
#include "runtime/data/regex.h"
#include "runtime/data/tokenizer_spec.h"

namespace drivetrain {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::kData, what);
}

// Typed access to the fields of one JSON object; `name` says in errors which one it is.
class Fields {
 public:
  Fields(const json& object, std::string name) : object_(object), name_(std::move(name)) {
    if (!object.is_object()) refuse(name_ + " must be an object, is " + object.type_name());
  }
  const std::string& name() const { return name_; }
  bool absent(const char* key) const { return !object_.contains(key) || object_[key].is_null(); }
  const json& at(const char* key) const {
    if (!object_.contains(key)) refuse(name_ + " lacks \"" + key + "\"");
    return object_[key];
  }
  const json& array(const char* key) const {
    const json& value = at(key);
    if (!value.is_array()) refuse(name_ + "." + key + " must be an array, is " + value.type_name());
    return value;
  }
  std::string text(const char* key) const {
    const json& value = at(key);
    if (!value.is_string()) refuse(name_ + "." + key + " must be a string, is " + value.type_name());
    return value.get<std::string>();
  }
  bool flag(const char* key) const {
    const json& value = at(key);
    if (!value.is_boolean()) refuse(name_ + "." + key + " must be true or false, is " + value.type_name());
    return value.get<bool>();
  }
  bool flag_or(const char* key, bool absent_value) const { return absent(key) ? absent_value : flag(key); }

 private:
  const json& object_;
  std::string name_;
};

// A short form for errors. Arrays and objects are named only: they may be nested to any depth.
std::string shown(const json& value) {
  return value.is_primitive() ? value.dump().substr(0, 60) : value.type_name();
}

std::int32_t token_id(const json& value, const std::string& name) {
  const bool fits =
      value.is_number_unsigned() &&
      value.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  if (!fits) refuse(name + " must be a token id (0 or a positive 31-bit integer), is " + shown(value));
  return value.get<std::int32_t>();
}

// Calls add(step, name) for a step or, in order, for each one of a Sequence of them.
template <class Add>
void for_each_step(const json& step, const std::string& name, const char* list_key, const Add& add, int depth = 0) {
  constexpr int kDeepest = 16;
  if (depth > kDeepest) refuse(name.substr(0, name.find('.')) + ": Sequences are nested too deep");
  const Fields fields(step, name);
  if (fields.text("type") != "Sequence") return add(fields, fields.text("type"));
  int index = 0;
  for (const json& inner : fields.array(list_key)) {
    for_each_step(inner, name + "." + list_key + "[" + std::to_string(index++) + "]", list_key, add, depth + 1);
  }
}

std::vector<NormalStep> parse_normalizer(const json& normalizer) {
  std::vector<NormalStep> steps;
  if (normalizer.is_null()) return steps;
  for_each_step(normalizer, "normalizer", "normalizers", [&](const Fields& fields, const std::string& type) {
    static const std::initializer_list<std::pair<const char*, NormalStep>> kKnown{
        {"NFC", NormalStep::kNfc},
        {"NFD", NormalStep::kNfd},
        {"NFKC", NormalStep::kNfkc},
        {"NFKD", NormalStep::kNfkd},
        {"Lowercase", NormalStep::kLowercase}};
    const auto known = std::find_if(kKnown.begin(), kKnown.end(), [&](const auto& k) { return type == k.first; });
    if (known == kKnown.end()) {
      refuse(fields.name() + ": \"" + type + "\" is not supported (NFC, NFD, NFKC, NFKD, Lowercase, Sequence are)");
    }
    steps.push_back(known->second);
  });
  return steps;
}

SplitStep parse_split(const Fields& fields) {
  static const std::initializer_list<std::pair<const char*, SplitBehavior>> kKnown{
      {"Isolated", SplitBehavior::kIsolated},
      {"Removed", SplitBehavior::kRemoved},
      {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
      {"MergedWithNext", SplitBehavior::kMergedWithNext},
      {"Contiguous", SplitBehavior::kContiguous}};
  const std::string behavior = fields.text("behavior");
  const auto known = std::find_if(kKnown.begin(), kKnown.end(), [&](const auto& k) { return behavior == k.first; });
  if (known == kKnown.end()) refuse(fields.name() + ".behavior: \"" + behavior + "\" is not supported");
  const Fields pattern(fields.at("pattern"), fields.name() + ".pattern");
  SplitStep step{SplitStep::Kind::kPattern, {}, known->second, fields.flag("invert")};
  step.pattern = pattern.absent("Regex") ? Regex::escape(pattern.text("String")) : pattern.text("Regex");
  return step;
}

// The pattern that GPT-2 splits by, built into ByteLevel.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::vector<SplitStep> parse_pre_tokenizer(const json& pre_tokenizer) {
  std::vector<SplitStep> steps;
  bool byte_level = false;
  if (pre_tokenizer.is_null()) refuse("pre_tokenizer: none; only byte-level BPE (with ByteLevel) is supported");
  for_each_step(pre_tokenizer, "pre_tokenizer", "pretokenizers", [&](const Fields& fields, const std::string& type) {
    if (byte_level) refuse(fields.name() + ": \"" + type + "\" after ByteLevel is not supported");
    if (type == "ByteLevel") {
      byte_level = true;
      if (fields.flag("add_prefix_space")) steps.push_back({SplitStep::Kind::kPrefixSpace, {}});
      if (fields.flag_or("use_regex", true)) steps.push_back({SplitStep::Kind::kPattern, kByteLevelPattern});
    } else if (type == "Split") {
      steps.push_back(parse_split(fields));
    } else if (type == "Digits") {
      const auto behavior = fields.flag("individual_digits") ? SplitBehavior::kIsolated : SplitBehavior::kContiguous;
      steps.push_back({SplitStep::Kind::kDigits, {}, behavior});
    } else {
      refuse(fields.name() + ": \"" + type + "\" is not supported (ByteLevel, Split, Digits, Sequence are)");
    }
  });
  if (!byte_level) refuse("pre_tokenizer: no ByteLevel; only byte-level BPE is supported");
  return steps;
}

std::pair<std::string, std::string> parse_merge(const json& merge, const std::string& name) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  }
  if (merge.is_string()) {
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space != std::string::npos && text.find(' ', space + 1) == std::string::npos) {
      return {text.substr(0, space), text.substr(space + 1)};
    }
  }
  refuse(name + " must be \"left right\" or [\"left\", \"right\"], is " + shown(merge));
}

BpeSpec parse_model(const json& model) {
  const Fields fields(model, "model");
  if (!fields.absent("type") && fields.text("type") != "BPE") {
    refuse("model: \"" + fields.text("type") + "\" is not supported (BPE is)");
  }
  if (fields.flag_or("byte_fallback", false)) refuse("model: byte_fallback is not supported");
  if (!fields.absent("dropout") && fields.at("dropout") != 0) refuse("model: dropout is not supported");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!fields.absent(key) && !fields.text(key).empty()) refuse(std::string("model: ") + key + " is not supported");
  }
  BpeSpec spec;
  spec.ignore_merges = fields.flag_or("ignore_merges", false);
  spec.fuse_unk = fields.flag_or("fuse_unk", false);
  if (!fields.absent("unk_token")) spec.unk_token = fields.text("unk_token");
  if (!fields.at("vocab").is_object()) refuse("model.vocab must be an object");
  for (const auto& [token, id] : fields.at("vocab").items()) {
    spec.vocab.emplace(token, token_id(id, "model.vocab[\"" + token + "\"]"));
  }
  std::size_t index = 0;
  for (const json& merge : fields.array("merges")) {
    const std::string name = "model.merges[" + std::to_string(index++) + "]";
    const bool version_line = merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version");
    if (!version_line) spec.merges.push_back(parse_merge(merge, name));
  }
  return spec;
}

// Ids as Hugging Face tokenizers gives them on loading: a token that the vocabulary holds keeps that id, others count
// on from its size. The ids in the file take no part.
class AddedIds {
 public:
  explicit AddedIds(const std::unordered_map<std::string, std::int32_t>& vocab)
      : vocab_(vocab), next_(static_cast<std::int32_t>(vocab.size())) {}
  std::int32_t id_for(const std::string& content) {
    if (const auto known = vocab_.find(content); known != vocab_.end()) return known->second;
    const auto [at, fresh] = given_.emplace(content, next_);
    if (fresh) ++next_;
    return at->second;
  }

 private:
  const std::unordered_map<std::string, std::int32_t>& vocab_;
  std::unordered_map<std::string, std::int32_t> given_;
  std::int32_t next_;
};

std::vector<AddedToken> parse_added(const json& list, const BpeSpec& bpe) {
  std::vector<AddedToken> tokens;
  AddedIds ids(bpe.vocab);
  if (!list.is_array()) refuse("added_tokens must be an array");
  for (const json& item : list) {
    const Fields fields(item, "added_tokens[" + std::to_string(tokens.size()) + "]");
    AddedToken token{.id = 0,
                     .content = fields.text("content"),
                     .single_word = fields.flag("single_word"),
                     .lstrip = fields.flag("lstrip"),
                     .rstrip = fields.flag("rstrip"),
                     .normalized = fields.flag("normalized"),
                     .special = fields.flag("special")};
    if (token.content.empty()) continue;
    token.id = ids.id_for(token.content);
    const auto same = [&](const AddedToken& t) { return t.id == token.id; };
    const auto before = std::find_if(tokens.begin(), tokens.end(), same);
    if (before == tokens.end()) {
      tokens.push_back(std::move(token));
    } else {
      *before = std::move(token);  // said twice: the later one holds
    }
  }
  return tokens;
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name) {
  try {
    const json file = json::parse(text);
    const Fields fields(file, "the file");
    TokenizerSpec spec;
    if (!fields.absent("normalizer")) spec.normal_steps = parse_normalizer(fields.at("normalizer"));
    spec.split_steps = parse_pre_tokenizer(fields.absent("pre_tokenizer") ? json() : fields.at("pre_tokenizer"));
    spec.bpe = parse_model(fields.at("model"));
    if (!fields.absent("added_tokens")) spec.added = parse_added(fields.at("added_tokens"), spec.bpe);
    return spec;
  } catch (const Error& e) {
    throw Error(e.kind(), name + ": " + e.what());
  } catch (const json::exception& e) {
    throw Error(ErrorKind::kData, name + ": not valid JSON: " + e.what());
  }
}

}  // namespace drivetrain
