#include <algorithm>
#include <cctype>

#include "kernels/error.h"
#include "runtime/data/regex.h"

namespace drivetrain {
namespace {

// Walks over a pattern once and writes it anew. What both dialects read alike passes; what they read differently is
// rewritten where that is exact and refused where it is not.
class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    while (at_ < pattern_.size()) {
      switch (pattern_[at_]) {
        case '\\':
          escape();
          break;
        case '[':
          char_class();
          break;
        case '(':
          group();
          break;
        case '{':
          interval();
          break;
        default:
          out_ += pattern_[at_++];
      }
    }
    return out_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::kData, "pattern '" + std::string(pattern_) + "': " + what + " is not supported");
  }
  char peek(std::size_t ahead) const { return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0'; }
  void pass(std::size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ += count;
  }

  void escape() {
    const char c = peek(1);
    switch (c) {
      case 's':
        return replace(2, "\\p{White_Space}");
      case 'S':
        return replace(2, "\\P{White_Space}");
      case 'd':
        return replace(2, "\\p{Nd}");
      case 'D':
        return replace(2, "\\P{Nd}");
      case 'v':
        return replace(2, "\\x0b");
      case 'r':
      case 'n':
      case 't':
      case 'f':
        return pass(2);
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_unit();
      case 'x':
        return hex();
      default:
        if (c == '\0' || std::isalnum(static_cast<unsigned char>(c))) refuse(std::string("'\\") + c + "'");
        pass(2);
    }
  }

  void replace(std::size_t count, const std::string& text) {
    out_ += text;
    at_ += count;
  }

  void property() {
    const std::size_t close = pattern_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse("a property without braces");
    std::string name(pattern_.substr(at_ + 3, close - at_ - 3));
    bool negative = peek(1) == 'P';
    if (name.starts_with('^')) {
      negative = !negative;
      name.erase(0, 1);
    }
    for (const char c : name) {
      if (!std::isalpha(static_cast<unsigned char>(c)) && c != '_') refuse("'\\p{" + name + "}'");
    }
    // One or two letters are a general category; a longer name is taken for a script.
    if (name.size() > 2) name = "sc:" + name;
    replace(close + 1 - at_, std::string(negative ? "\\P{" : "\\p{") + name + "}");
  }

  std::string hex_digits(std::size_t from, std::size_t count) const {
    const std::string digits(pattern_.substr(std::min(from, pattern_.size()), count));
    if (digits.size() != count) refuse("a short hexadecimal escape");
    for (const char c : digits) {
      if (!std::isxdigit(static_cast<unsigned char>(c))) refuse("a hexadecimal escape with other characters");
    }
    return digits;
  }

  void code_unit() { replace(6, "\\x{" + hex_digits(at_ + 2, 4) + "}"); }

  void hex() {
    if (peek(2) == '{') {
      const std::size_t close = pattern_.find('}', at_);
      if (close == std::string_view::npos) refuse("'\\x{' without end");
      const std::string digits = hex_digits(at_ + 3, close - at_ - 3);
      return replace(close + 1 - at_, "\\x{" + digits + "}");
    }
    const std::string digits = hex_digits(at_ + 2, 2);
    if (digits[0] >= '8') refuse("a raw byte '\\x" + digits + "'");
    replace(4, "\\x" + digits);
  }

  void char_class() {
    pass(1);
    if (peek(0) == '^') pass(1);
    if (peek(0) == ']') refuse("']' first in a class");
    while (at_ < pattern_.size() && peek(0) != ']') {
      if (peek(0) == '[') refuse("'[' inside a class");
      if (peek(0) == '&' && peek(1) == '&') refuse("'&&' inside a class");
      if (peek(0) == '\\') {
        escape();
      } else {
        pass(1);
      }
    }
    if (at_ >= pattern_.size()) refuse("a class without end");
    pass(1);
  }

  void group() {
    if (peek(1) != '?') return pass(1);
    for (const std::string_view head : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?i:"}) {
      if (pattern_.substr(at_).starts_with(head)) return pass(head.size());
    }
    if (at_ == 0 && pattern_.starts_with("(?i)")) return pass(4);
    refuse("the group '" + std::string(pattern_.substr(at_, 4)) + "'");
  }

  void interval() {
    std::size_t end = at_ + 1, commas = 0, digits = 0;
    while (end < pattern_.size() &&
           (std::isdigit(static_cast<unsigned char>(pattern_[end])) || pattern_[end] == ',')) {
      (pattern_[end] == ',' ? commas : digits) += 1;
      ++end;
    }
    const bool counts = end < pattern_.size() && pattern_[end] == '}' && commas <= 1 && digits > 0;
    if (!counts) {  // a brace as itself
      out_ += '\\';
      return pass(1);
    }
    const char after = end + 1 < pattern_.size() ? pattern_[end + 1] : '\0';
    if (peek(1) == ',' || after == '+' || (after == '?' && commas == 0)) {
      refuse("the interval '" + std::string(pattern_.substr(at_, end + 2 - at_)) + "'");
    }
    pass(end + 1 - at_);
  }

  const std::string_view pattern_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string translate_pattern(std::string_view pattern) {
  return Translator(pattern).run();
}

}  // namespace drivetrain
