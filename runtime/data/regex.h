// A compiled pattern over UTF-8 text, in the dialect of Hugging Face tokenizers (Oniguruma) as far as it means the same
// here. One Regex may be used by many threads, each with a Matcher of its own.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace drivetrain {

struct Match {
  std::size_t begin, end;
};

class Regex {
 public:
  // What a thread needs while it matches; grows to what the patterns need.
  class Matcher {
   public:
    Matcher();
    ~Matcher();
    Matcher(const Matcher&) = delete;
    Matcher& operator=(const Matcher&) = delete;

   private:
    friend class Regex;
    struct State;
    std::unique_ptr<State> state_;
  };

  // Throws kData naming the pattern when it does not compile, uses what the two dialects read differently, or matches
  // the empty text.
  explicit Regex(const std::string& pattern);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) = delete;

  // The leftmost match at or after `from`; text is valid UTF-8 and `from` begins a character.
  std::optional<Match> find(std::string_view text, std::size_t from, Matcher& matcher) const;

  // A pattern that matches text itself.
  static std::string escape(std::string_view text);
  // Versions that decide which characters a class holds; part of a tokenizer's fingerprint.
  static std::string version();

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

// The pattern in PCRE2's dialect; throws kData for what it cannot say there.
std::string translate_pattern(std::string_view pattern);

}  // namespace drivetrain
