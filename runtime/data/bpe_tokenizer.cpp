// The tokenizer of a tokenizer.json: added tokens, normalizer, pre-tokenizer and byte pair encoding, in this order.
#include <xxhash.h>

#include <algorithm>
#include <mutex>

#include "kernels/error.h"
#include "runtime/data/added_vocabulary.h"
#include "runtime/data/bpe_model.h"
#include "runtime/data/byte_alphabet.h"
#include "runtime/data/mapped_file.h"
#include "runtime/data/normalizer.h"
#include "runtime/data/pre_tokenizer.h"
#include "runtime/data/tokenizer.h"
#include "runtime/data/utf8.h"

namespace drivetrain {
namespace {

constexpr std::size_t kIdsAtOnce = 1 << 16;
// Part of the fingerprint: raise it when the code gives other ids for the same file.
constexpr const char* kEncoderVersion = "bpe-1";

std::vector<AddedToken> tokens_where(const std::vector<AddedToken>& all, bool normalized) {
  std::vector<AddedToken> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some),
               [&](const auto& t) { return t.normalized == normalized; });
  return some;
}

// These are looked for in normalised text, so they are normalised themselves.
std::vector<AddedToken> normalized_tokens(const std::vector<AddedToken>& all, const Normalizer& normalizer) {
  std::vector<AddedToken> tokens = tokens_where(all, true);
  for (AddedToken& token : tokens) {
    std::string storage;
    token.content = std::string(normalizer.normalize(token.content, storage));
  }
  return tokens;
}

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(const TokenizerSpec& spec, std::int32_t end_of_text, std::string fingerprint)
      : normalizer_(spec.normal_steps),
        raw_added_(tokens_where(spec.added, false)),
        normalized_added_(normalized_tokens(spec.added, normalizer_)),
        pre_tokenizer_(spec.split_steps),
        model_(spec.bpe),
        end_of_text_(end_of_text),
        fingerprint_(std::move(fingerprint)) {
    for (const auto& [token, id] : spec.bpe.vocab) texts_[id] = bytes_of_token(token).value_or(token);
    for (const AddedToken& token : spec.added) texts_[token.id] = token.content;
    for (const auto& [id, text] : texts_) vocab_size_ = std::max<std::int64_t>(vocab_size_, std::int64_t{id} + 1);
  }

  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> all;
    encode_to(text, [&](std::span<const std::int32_t> ids) { all.insert(all.end(), ids.begin(), ids.end()); });
    return all;
  }

  void encode_to(std::string_view text, const IdSink& sink) const override {
    const Lease scratch(*this);
    scratch->ids.clear();
    const AddedVocabulary::Sink raw{[&](std::string_view part) { encode_part(part, *scratch, sink); },
                                    [&](std::int32_t id) { scratch->ids.push_back(id); }};
    raw_added_.split(valid_utf8(text, scratch->valid), raw);
    if (!scratch->ids.empty()) sink(scratch->ids);
  }

  std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    for (const std::int32_t id : ids) text += token_text(id);
    return text;
  }

  std::int64_t vocab_size() const override { return vocab_size_; }
  std::int32_t end_of_text() const override { return end_of_text_; }
  std::string fingerprint() const override { return fingerprint_; }

  std::string token_text(std::int32_t id) const override {
    const auto found = texts_.find(id);
    if (found == texts_.end()) {
      throw Error(ErrorKind::kData, "token id " + std::to_string(id) + " is not in the tokenizer (ids end at " +
                                        std::to_string(vocab_size_ - 1) + ")");
    }
    return found->second;
  }

 private:
  struct Scratch {
    std::string valid, normal;
    Regex::Matcher matcher;
    BpeModel::Scratch model;
    std::vector<std::int32_t> ids;
  };

  // A Scratch for one call; it goes back with the pieces it has learned.
  class Lease {
   public:
    explicit Lease(const BpeTokenizer& owner) : owner_(owner) {
      const std::lock_guard lock(owner.mutex_);
      if (!owner.idle_.empty()) {
        scratch_ = std::move(owner.idle_.back());
        owner.idle_.pop_back();
      } else {
        scratch_ = std::make_unique<Scratch>();
      }
    }
    ~Lease() {
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(std::move(scratch_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch& operator*() const { return *scratch_; }
    Scratch* operator->() const { return scratch_.get(); }

   private:
    const BpeTokenizer& owner_;
    std::unique_ptr<Scratch> scratch_;
  };

  void encode_part(std::string_view part, Scratch& scratch, const IdSink& sink) const {
    const PreTokenizer::Sink piece = [&](std::string_view bytes) {
      model_.encode(bytes, scratch.model, scratch.ids);
      if (scratch.ids.size() >= kIdsAtOnce) {
        sink(scratch.ids);
        scratch.ids.clear();
      }
    };
    const AddedVocabulary::Sink normal{
        [&](std::string_view text) { pre_tokenizer_.split(text, scratch.matcher, piece); },
        [&](std::int32_t id) { scratch.ids.push_back(id); }};
    normalized_added_.split(normalizer_.normalize(part, scratch.normal), normal);
  }

  const Normalizer normalizer_;
  const AddedVocabulary raw_added_, normalized_added_;
  const PreTokenizer pre_tokenizer_;
  const BpeModel model_;
  const std::int32_t end_of_text_;
  const std::string fingerprint_;
  std::unordered_map<std::int32_t, std::string> texts_;
  std::int64_t vocab_size_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_;
};

std::string fingerprint_of(std::string_view json, std::int32_t end_of_text) {
  const XXH128_hash_t hash = XXH3_128bits(json.data(), json.size());
  return std::string(kEncoderVersion) + " " + std::to_string(hash.high64) + " " + std::to_string(hash.low64) +
         " eos " + std::to_string(end_of_text) + " pcre2 " + Regex::version() + " utf8proc " + Normalizer::version();
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = folder ? path / "tokenizer.json" : path;
  const MappedFile json(file);
  const TokenizerSpec spec = parse_tokenizer_json(json.bytes(), file.string());
  const std::int32_t end_of_text = find_end_of_text(file.parent_path(), spec);
  try {
    return std::make_unique<BpeTokenizer>(spec, end_of_text, fingerprint_of(json.bytes(), end_of_text));
  } catch (const Error& e) {
    throw Error(e.kind(), file.string() + ": " + e.what());
  }
}

}  // namespace drivetrain
