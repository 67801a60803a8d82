// The byte tokenizer: id = byte value, <|endoftext|> = 256.
#include "kernels/error.h"
#include "runtime/data/tokenizer.h"

namespace drivetrain {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";
constexpr std::int32_t kEndOfTextId = 256;

class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    ids.reserve(text.size());
    while (!text.empty()) {
      const std::size_t at = std::min(text.find(kEndOfText), text.size());
      for (const char c : text.substr(0, at)) ids.push_back(static_cast<unsigned char>(c));
      text.remove_prefix(at);
      if (text.empty()) break;
      ids.push_back(kEndOfTextId);
      text.remove_prefix(kEndOfText.size());
    }
    return ids;
  }

  std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    text.reserve(ids.size());
    for (const std::int32_t id : ids) {
      if (id < 0 || id > kEndOfTextId) {
        throw Error(ErrorKind::kData, "token id " + std::to_string(id) + " is outside the byte tokenizer's 0..256");
      }
      if (id == kEndOfTextId) {
        text += kEndOfText;
      } else {
        text += static_cast<char>(id);
      }
    }
    return text;
  }

  std::int64_t vocab_size() const override { return kEndOfTextId + 1; }
  std::int32_t end_of_text() const override { return kEndOfTextId; }
  std::string token_text(std::int32_t id) const override { return decode({id}); }
  std::string fingerprint() const override { return "bytes-1"; }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace drivetrain
