// The byte alphabet of GPT-2: each byte is written as one visible character, so that a vocabulary of byte strings fits
// into JSON. Printable Latin-1 stands for itself; the other 68 bytes are U+0100, U+0101, ... in order.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace drivetrain {

// The bytes that a token of the vocabulary stands for; nothing when it has characters outside the alphabet.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace drivetrain
