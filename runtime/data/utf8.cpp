#include "runtime/data/utf8.h"

#include <utf8proc.h>

namespace drivetrain {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Scan {
  std::size_t bytes;  // of a whole character, or of a broken one's longest valid prefix (at least 1)
  bool valid;
};

// Table 3-7 of the Unicode standard.
Scan scan(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  const std::size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0) return {1, false};
  unsigned char low = 0x80, high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Scan next = scan(text.substr(at));
    if (!next.valid) break;
    at += next.bytes;
  }
  return at;
}

}  // namespace

std::string_view valid_utf8(std::string_view text, std::string& storage) {
  std::size_t good = valid_prefix(text);
  if (good == text.size()) return text;
  storage.clear();
  for (;;) {
    storage += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) return storage;
    storage += kReplacement;
    text.remove_prefix(scan(text).bytes);
    good = valid_prefix(text);
  }
}

std::size_t last_char(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

std::size_t char_bytes(std::string_view text, std::size_t at) {
  return scan(text.substr(at)).bytes;
}

char32_t code_point(std::string_view text, std::size_t at) {
  utf8proc_int32_t c = 0;
  const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  utf8proc_iterate(from, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  return static_cast<char32_t>(c);
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_numeric(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  // Other_Alphabetic outside the categories above, and Join_Control.
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C || c == 0x200D;
}

}  // namespace drivetrain
