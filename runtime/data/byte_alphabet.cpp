#include "runtime/data/byte_alphabet.h"

#include <array>

#include "runtime/data/utf8.h"

namespace drivetrain {
namespace {

constexpr char32_t kFirstShifted = 0x100;
constexpr int kShifted = 68;

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<unsigned char, kShifted> shifted_bytes() {
  std::array<unsigned char, kShifted> bytes{};
  std::size_t count = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (!stands_for_itself(byte)) bytes[count++] = static_cast<unsigned char>(byte);
  }
  return bytes;
}

constexpr auto kShiftedBytes = shifted_bytes();

}  // namespace

std::optional<std::string> bytes_of_token(std::string_view token) {
  std::string bytes;
  for (std::size_t at = 0; at < token.size(); at += char_bytes(token, at)) {
    const char32_t c = code_point(token, at);
    if (c < kFirstShifted && stands_for_itself(static_cast<int>(c))) {
      bytes += static_cast<char>(c);
    } else if (c >= kFirstShifted && c < kFirstShifted + kShifted) {
      bytes += static_cast<char>(kShiftedBytes[c - kFirstShifted]);
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace drivetrain
