// Small questions about UTF-8 text. No normalisation.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace drivetrain {

// text when it is valid; else `storage`, filled with text in which each longest prefix of a character that ends too
// soon, and each byte that begins none, is U+FFFD (what Python's errors="replace" does).
std::string_view valid_utf8(std::string_view text, std::string& storage);

// Begin of the last character before `end`, 0 < end <= text.size(), text valid.
std::size_t last_char(std::string_view text, std::size_t end);
// Bytes of the character at `at`.
std::size_t char_bytes(std::string_view text, std::size_t at);
// Code point of the character at `at`.
char32_t code_point(std::string_view text, std::size_t at);

bool is_white_space(char32_t c);  // Unicode White_Space
bool is_numeric(char32_t c);      // Nd, Nl, No
bool is_word(char32_t c);         // Alphabetic, M, Nd, Pc, Join_Control

}  // namespace drivetrain
