#include "runtime/data/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/error.h"
#include "runtime/data/utf8.h"

namespace drivetrain {
namespace {

bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

int options_of(NormalStep step) {
  switch (step) {
    case NormalStep::kNfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case NormalStep::kNfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case NormalStep::kNfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
    default:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
  }
}

void append_normalized(std::string& out, std::string_view text, int options) {
  utf8proc_uint8_t* raw = nullptr;
  const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t size =
      utf8proc_map(from, static_cast<utf8proc_ssize_t>(text.size()), &raw, static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> result(raw, &std::free);
  if (size < 0) throw Error(ErrorKind::kData, std::string("cannot normalise text: ") + utf8proc_errmsg(size));
  out.append(reinterpret_cast<const char*>(result.get()), static_cast<std::size_t>(size));
}

// An ASCII character never joins with what stands before it, so each may begin a part of its own: runs of ASCII pass
// as they are, and the last of a run goes with the characters that follow it.
void normal_form(std::string& out, std::string_view text, int options) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
    const auto wide = std::find_if_not(begin, text.end(), is_ascii);
    std::size_t plain = static_cast<std::size_t>(wide - begin);
    if (wide != text.end() && plain > 0) --plain;
    out += text.substr(at, plain);
    at += plain;
    if (wide == text.end()) return;
    const auto end = std::find_if(wide, text.end(), is_ascii);
    const auto stop = static_cast<std::size_t>(end - text.begin());
    append_normalized(out, text.substr(at, stop - at), options);
    at = stop;
  }
}

void lowercase(std::string& out, std::string_view text) {
  constexpr char32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two
  for (std::size_t at = 0; at < text.size(); at += char_bytes(text, at)) {
    const char32_t c = code_point(text, at);
    if (c == kCapitalIWithDot) {
      out += "i\xCC\x87";
      continue;
    }
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t size = utf8proc_encode_char(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

}  // namespace

std::string_view Normalizer::normalize(std::string_view text, std::string& storage) const {
  std::string_view current = text;
  for (const NormalStep step : steps_) {
    const bool ascii = std::all_of(current.begin(), current.end(), is_ascii);
    std::string next;
    if (step == NormalStep::kLowercase) {
      lowercase(next, current);
    } else if (ascii) {
      continue;
    } else {
      normal_form(next, current, options_of(step));
    }
    storage = std::move(next);
    current = storage;
  }
  return current;
}

std::string Normalizer::version() {
  return std::string("unicode ") + utf8proc_unicode_version();
}

}  // namespace drivetrain
