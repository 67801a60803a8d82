// Text <-> token ids. Two kinds: bytes (256 byte ids and <|endoftext|> = 256) and byte-level BPE from a Hugging Face
// tokenizer.json (GPT-2, Llama 3, Qwen2.5, SmolLM2), giving the same ids as Hugging Face tokenizers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace drivetrain {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Ids of text; added and special tokens inside the text are recognised; adds no BOS/EOS by itself.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // The ids of encode(text), handed out in pieces, for documents too long to hold all their ids at once.
  using IdSink = std::function<void(std::span<const std::int32_t>)>;
  virtual void encode_to(std::string_view text, const IdSink& sink) const { sink(encode(text)); }
  // Bytes of ids; unknown ids throw kData. Special tokens are written as their text.
  virtual std::string decode(const std::vector<std::int32_t>& ids) const = 0;
  virtual std::int64_t vocab_size() const = 0;                // highest id + 1
  virtual std::int32_t end_of_text() const = 0;               // id that ends a document; -1 if there is none
  virtual std::string token_text(std::int32_t id) const = 0;  // for error messages
  virtual std::string fingerprint() const = 0;  // hash of everything that decides the ids; key of the cache
};

std::unique_ptr<Tokenizer> make_byte_tokenizer();
// For data that are ids already: text is refused (kConfig), no id ends a document.
std::unique_ptr<Tokenizer> make_ids_tokenizer();
// path: a tokenizer.json or the folder that holds it (tokenizer_config.json there names the eos token). Throws kData
// naming the file and the feature when a part of the file is not supported, rather than giving other ids.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

}  // namespace drivetrain
