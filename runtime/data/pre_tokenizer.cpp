#include "runtime/data/pre_tokenizer.h"

#include "runtime/data/utf8.h"

namespace drivetrain {
namespace {

// Takes the alternating parts of a text, matches and what lies between them, and passes on the pieces that the behavior
// makes of them. A part joins the one before it or it does not: no behavior needs to look further.
template <class Emit>
class Joiner {
 public:
  Joiner(std::string_view text, SplitBehavior behavior, Emit emit) : text_(text), behavior_(behavior), emit_(emit) {}

  void add(std::size_t begin, std::size_t end, bool is_match) {
    if (begin == end) return;
    if (begin_ < end_ && joins(is_match)) {
      end_ = end;
    } else {
      flush();
      begin_ = begin;
      end_ = end;
    }
    last_is_match_ = is_match;
  }
  void flush() {
    const bool removed = behavior_ == SplitBehavior::kRemoved && last_is_match_;
    if (begin_ < end_ && !removed) emit_(text_.substr(begin_, end_ - begin_));
    begin_ = end_;
  }

 private:
  bool joins(bool is_match) const {
    switch (behavior_) {
      case SplitBehavior::kContiguous:
        return last_is_match_ == is_match;
      case SplitBehavior::kMergedWithPrevious:
        return is_match && !last_is_match_;
      case SplitBehavior::kMergedWithNext:
        return !is_match && last_is_match_;
      default:
        return false;
    }
  }

  const std::string_view text_;
  const SplitBehavior behavior_;
  Emit emit_;
  std::size_t begin_ = 0, end_ = 0;  // the piece that may still grow
  bool last_is_match_ = false;
};

template <class Parts>
void match_pattern(std::string_view text, const Regex& regex, Regex::Matcher& matcher, bool invert, Parts& parts) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto match = regex.find(text, at, matcher);
    if (!match) break;
    parts.add(at, match->begin, invert);
    parts.add(match->begin, match->end, !invert);
    at = match->end;
  }
  parts.add(at, text.size(), invert);
}

template <class Parts>
void match_digits(std::string_view text, Parts& parts) {
  std::size_t plain = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = at + char_bytes(text, at);
    if (is_numeric(code_point(text, at))) {
      parts.add(plain, at, false);
      parts.add(at, next, true);
      plain = next;
    }
    at = next;
  }
  parts.add(plain, text.size(), false);
}

}  // namespace

PreTokenizer::PreTokenizer(const std::vector<SplitStep>& steps) {
  for (const SplitStep& spec : steps) {
    Step step{spec, std::nullopt};
    if (spec.kind == SplitStep::Kind::kPattern) step.regex.emplace(spec.pattern);
    steps_.push_back(std::move(step));
  }
}

void PreTokenizer::split(std::string_view text, Regex::Matcher& matcher, const Sink& sink) const {
  if (!text.empty()) apply(0, text, matcher, sink);
}

void PreTokenizer::apply(std::size_t index, std::string_view text, Regex::Matcher& matcher, const Sink& sink) const {
  if (index == steps_.size()) return sink(text);
  const Step& step = steps_[index];
  if (step.spec.kind == SplitStep::Kind::kPrefixSpace) {
    if (text.starts_with(' ')) return apply(index + 1, text, matcher, sink);
    std::string prefixed(1, ' ');
    prefixed += text;
    return apply(index + 1, prefixed, matcher, sink);
  }
  Joiner parts(text, step.spec.behavior, [&](std::string_view piece) { apply(index + 1, piece, matcher, sink); });
  if (step.spec.kind == SplitStep::Kind::kDigits) {
    match_digits(text, parts);
  } else {
    match_pattern(text, *step.regex, matcher, step.spec.invert, parts);
  }
  parts.flush();
}

}  // namespace drivetrain
