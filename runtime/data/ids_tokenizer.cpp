// The tokenizer of data that come as ids and never as text.
#include "kernels/error.h"
#include "runtime/data/tokenizer.h"

namespace drivetrain {
namespace {

class IdsTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view) const override { refuse(); }
  std::string decode(const std::vector<std::int32_t>&) const override { refuse(); }
  std::int64_t vocab_size() const override { return 0; }
  std::int32_t end_of_text() const override { return -1; }
  std::string token_text(std::int32_t id) const override { return "id " + std::to_string(id); }
  std::string fingerprint() const override { return "ids"; }

 private:
  [[noreturn]] static void refuse() {
    throw Error(ErrorKind::kConfig, "there is no tokenizer for text: name one with data.tokenizer");
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_ids_tokenizer() {
  return std::make_unique<IdsTokenizer>();
}

}  // namespace drivetrain
