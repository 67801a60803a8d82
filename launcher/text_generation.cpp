#include "launcher/text_generation.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Generation generate_tokens(Model& model, Arena& arena, std::span<const std::int32_t> prompt, std::int64_t max_tokens,
                           const SamplingOptions& sampling, std::int32_t stop_id,
                           const std::function<void(std::int32_t)>& on_token) {
  const auto prompt_tokens = static_cast<std::int64_t>(prompt.size());
  if (prompt.empty()) throw Error(ErrorKind::kData, "the prompt has no tokens; give at least one character");
  if (prompt_tokens >= model.max_positions())
    throw Error(ErrorKind::kData, "the prompt has " + std::to_string(prompt_tokens) + " tokens; the model has " +
                                      std::to_string(model.max_positions()) +
                                      " positions here (data.seq_len), which leaves no room for new ones");
  for (const std::int32_t id : prompt)
    if (id < 0 || id >= model.vocab_size())
      throw Error(ErrorKind::kData, "the prompt holds token " + std::to_string(id) +
                                        "; the model's vocabulary ends at " + std::to_string(model.vocab_size() - 1));

  const auto cache = model.make_cache(std::min(model.max_positions(), prompt_tokens + max_tokens));
  Generation out;
  std::vector<std::int32_t> next(prompt.begin(), prompt.end());
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t n = 0; n < max_tokens && cache->length() < cache->capacity(); ++n) {
    const auto logits = model.logits(next, cache.get(), Model::Rows::kLast, arena);
    const std::int32_t id = sample_token(logits, sampling, n);
    if (n == 0) out.first_token_ms = ms_since(start);
    if (id == stop_id) break;
    out.ids.push_back(id);
    on_token(id);
    next.assign(1, id);
  }
  if (out.ids.size() > 1)
    out.tokens_per_s =
        static_cast<double>(out.ids.size() - 1) * 1e3 / std::max(ms_since(start) - out.first_token_ms, 1e-6);
  return out;
}

}  // namespace drivetrain
