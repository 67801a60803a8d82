#include "runtime/data/added_vocabulary.h"

#include <algorithm>

#include "kernels/error.h"
#include "runtime/data/utf8.h"

namespace drivetrain {
namespace {

bool is_single_word(std::string_view text, std::size_t begin, std::size_t end) {
  const bool word_before = begin > 0 && is_word(code_point(text, last_char(text, begin)));
  const bool word_after = end < text.size() && is_word(code_point(text, end));
  return !word_before && !word_after;
}

std::size_t space_begin(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t at = last_char(text, end);
    if (!is_white_space(code_point(text, at))) break;
    end = at;
  }
  return end;
}

std::size_t space_end(std::string_view text, std::size_t begin) {
  while (begin < text.size() && is_white_space(code_point(text, begin))) begin += char_bytes(text, begin);
  return begin;
}

}  // namespace

AddedVocabulary::AddedVocabulary(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (std::size_t index = 0; index < tokens_.size(); ++index) {
    std::int32_t node = 0;
    for (const char byte : tokens_[index].content) {
      auto& children = nodes_[static_cast<std::size_t>(node)].children;
      const auto at = std::lower_bound(children.begin(), children.end(), std::pair{byte, std::int32_t{-1}});
      if (at != children.end() && at->first == byte) {
        node = at->second;
      } else {
        node = static_cast<std::int32_t>(nodes_.size());
        children.insert(at, {byte, node});
        nodes_.emplace_back();
      }
    }
    auto& token = nodes_[static_cast<std::size_t>(node)].token;
    if (node == 0 || token >= 0) {
      throw Error(ErrorKind::kData,
                  "added token '" + tokens_[index].content + "' is empty or the same as another one");
    }
    token = static_cast<std::int32_t>(index);
  }
}

const AddedVocabulary::Node* AddedVocabulary::child(const Node& node, char byte) const {
  const auto at = std::lower_bound(node.children.begin(), node.children.end(), std::pair{byte, std::int32_t{-1}});
  if (at == node.children.end() || at->first != byte) return nullptr;
  return &nodes_[static_cast<std::size_t>(at->second)];
}

std::int32_t AddedVocabulary::longest(std::string_view text, std::size_t at) const {
  std::int32_t found = -1;
  const Node* node = child(nodes_[0], text[at]);
  while (node) {
    if (node->token >= 0) found = node->token;
    if (++at >= text.size()) break;
    node = child(*node, text[at]);
  }
  return found;
}

void AddedVocabulary::split(std::string_view text, const Sink& sink) const {
  std::size_t done = 0;  // text before it was handed over
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    const std::int32_t index = longest(text, at);
    if (index < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(index)];
    std::size_t begin = at, end = at + token.content.size();
    at = end;  // also where white space after the token is taken: another one may begin inside it
    if (token.single_word && !is_single_word(text, begin, end)) continue;
    if (token.lstrip) begin = space_begin(text, begin);
    if (token.rstrip) end = space_end(text, end);
    if (done < begin) sink.text(text.substr(done, begin - done));
    sink.token(token.id);
    done = end;
  }
  if (done < text.size()) sink.text(text.substr(done));
}

}  // namespace drivetrain
