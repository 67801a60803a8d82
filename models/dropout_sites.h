// Numbers of the dropout sites of a model: part of the counter that decides each mask, so they must never change.
#pragma once
#include <cstdint>

namespace drivetrain {

enum class DropoutKind : std::uint32_t { kEmbedding = 0, kAttention = 1, kAttentionOutput = 2, kMlpOutput = 3 };

constexpr std::uint32_t dropout_site(std::int64_t layer, DropoutKind kind) {
  return static_cast<std::uint32_t>(layer) * 4 + static_cast<std::uint32_t>(kind);
}

}  // namespace drivetrain
