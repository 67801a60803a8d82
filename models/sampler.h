// Picks the next token from logits: greedy, or by temperature, top-k and nucleus (top-p; Holtzman et al. 2020). Pure: the
// same logits, options and draw index give the same token.
#pragma once
#include <cstdint>
#include <span>

namespace drivetrain {

struct SamplingOptions {
  double temperature = 0;  // 0: greedy
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;        // smallest set of tokens with this much probability
  std::uint64_t seed = 0;
};

// draw: how many tokens were drawn before. Ties go to the lower id. Throws kNumeric when no logit is finite.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, std::int64_t draw);

}  // namespace drivetrain
