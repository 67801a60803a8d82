// Continues a prompt token by token through a key/value cache, and times it.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/sampler.h"
#include "runtime/model.h"

namespace drivetrain {

struct Generation {
  std::vector<std::int32_t> ids;  // new tokens, the stop token not included
  double first_token_ms = 0;
  double tokens_per_s = 0;  // of the tokens after the first; 0 when there is only one
};

// Collective over tp; every tensor rank gets the same tokens. Ends at `stop_id` (-1: none), after max_tokens, or when
// the model's positions are used up. An empty prompt throws kData.
Generation generate_tokens(Model& model, Arena& arena, std::span<const std::int32_t> prompt, std::int64_t max_tokens,
                           const SamplingOptions& sampling, std::int32_t stop_id,
                           const std::function<void(std::int32_t)>& on_token);

}  // namespace drivetrain
