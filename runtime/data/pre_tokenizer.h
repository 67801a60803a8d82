// Cuts text into the pieces that byte pair encoding may not cross. Knows no ids.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/regex.h"
#include "runtime/data/tokenizer_spec.h"

namespace drivetrain {

class PreTokenizer {
 public:
  using Sink = std::function<void(std::string_view piece)>;

  explicit PreTokenizer(const std::vector<SplitStep>& steps);
  // Hands the pieces of text (valid UTF-8, not empty) to sink, in order; none is empty. A piece lives during its call.
  void split(std::string_view text, Regex::Matcher& matcher, const Sink& sink) const;

 private:
  struct Step {
    SplitStep spec;
    std::optional<Regex> regex;
  };
  void apply(std::size_t step, std::string_view text, Regex::Matcher& matcher, const Sink& sink) const;

  std::vector<Step> steps_;
};

}  // namespace drivetrain
