// Finds added tokens inside text: the rules of Hugging Face tokenizers for single_word, lstrip and rstrip. Does not
// normalise: tokens and text are compared byte by byte.
#pragma once
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "runtime/data/tokenizer_spec.h"

namespace drivetrain {

class AddedVocabulary {
 public:
  struct Sink {
    std::function<void(std::string_view)> text;  // between tokens; never empty
    std::function<void(std::int32_t)> token;
  };
  // Tokens whose contents differ and are not empty. The longest one wins where several begin at the same place.
  explicit AddedVocabulary(std::vector<AddedToken> tokens);
  // Hands over text in order, cut around the tokens. text is valid UTF-8.
  void split(std::string_view text, const Sink& sink) const;

 private:
  struct Node {
    std::vector<std::pair<char, std::int32_t>> children;  // byte, node; sorted by byte
    std::int32_t token = -1;                              // index in tokens_
  };
  const Node* child(const Node& node, char byte) const;
  // Index of the longest token that begins at `at`; -1 if none does.
  std::int32_t longest(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
};

}  // namespace drivetrain
