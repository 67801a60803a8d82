#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/data/regex.h"

#include <pcre2.h>

#include <array>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::size_t kStackBytes = 32 * 1024, kMaxStackBytes = 8 * 1024 * 1024;

std::string reason_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct FreeCode {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* p) const { pcre2_compile_context_free(p); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
};
struct FreeStack {
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};

template <class T>
T* got(T* p) {
  if (!p) throw Error(ErrorKind::kMemory, "no memory for a regular expression");
  return p;
}

}  // namespace

struct Regex::Code {
  std::string pattern;
  std::unique_ptr<pcre2_code, FreeCode> code;
};

struct Regex::Matcher::State {
  std::unique_ptr<pcre2_match_data, FreeMatchData> data;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack;
};

Regex::Matcher::Matcher() : state_(std::make_unique<State>()) {
  state_->data.reset(got(pcre2_match_data_create(1, nullptr)));
  state_->context.reset(got(pcre2_match_context_create(nullptr)));
  state_->stack.reset(got(pcre2_jit_stack_create(kStackBytes, kMaxStackBytes, nullptr)));
  pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
}

Regex::Matcher::~Matcher() = default;

Regex::Regex(const std::string& pattern) : code_(std::make_unique<Code>()) {
  code_->pattern = pattern;
  const std::string translated = translate_pattern(pattern);
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(
      got(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int code = 0;
  PCRE2_SIZE at = 0;
  code_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &at,
                                  context.get()));
  if (!code_->code) throw Error(ErrorKind::kData, "pattern '" + pattern + "': " + reason_of(code));
  std::uint32_t matches_empty = 0;
  pcre2_pattern_info(code_->code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0)
    throw Error(ErrorKind::kData, "pattern '" + pattern + "' matches the empty text: not supported");
  // Where there is no just-in-time compiler the interpreter matches the same.
  pcre2_jit_compile(code_->code.get(), PCRE2_JIT_COMPLETE);
}

Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

std::optional<Match> Regex::find(std::string_view text, std::size_t from, Matcher& matcher) const {
  auto& state = *matcher.state_;
  const int rc = pcre2_match(code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                             PCRE2_NO_UTF_CHECK, state.data.get(), state.context.get());
  if (rc == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (rc < 0) throw Error(ErrorKind::kData, "pattern '" + code_->pattern + "': matching failed: " + reason_of(rc));
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(state.data.get());
  return Match{range[0], range[1]};
}

std::string Regex::escape(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && !std::isalnum(byte)) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::string Regex::version() {
  std::array<char, 64> text{};
  pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, text.data());
  return std::string("unicode ") + text.data();
}

}  // namespace drivetrain
