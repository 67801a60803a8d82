// CRC-32C (Castagnoli, RFC 3720 section 12.1), and the masked form that TFRecord files carry.
#pragma once
#include <cstdint>
#include <string_view>

namespace drivetrain {

std::uint32_t crc32c(std::string_view bytes);
// Rotated right by 15 and offset, so that a checksum of data that holds checksums stays useful (tfrecord guide,
// tensorflow.org/tutorials/load_data/tfrecord).
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace drivetrain
