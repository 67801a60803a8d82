#include "models/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/error.h"
#include "kernels/philox.h"

namespace drivetrain {

std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, std::int64_t draw) {
  const auto best = std::max_element(logits.begin(), logits.end(),
                                     [](float a, float b) { return std::isnan(a) ? !std::isnan(b) : a < b; });
  if (best == logits.end() || !std::isfinite(*best))
    throw Error(ErrorKind::kNumeric, "the model's logits are not finite; no token can be drawn");
  if (options.temperature <= 0) return static_cast<std::int32_t>(best - logits.begin());

  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(order.size()))
    order.resize(static_cast<std::size_t>(options.top_k));

  std::vector<double> weight(order.size());
  double total = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    total += weight[i] = std::exp((double(logit(order[i])) - double(*best)) / options.temperature);
  double kept = 0;
  std::size_t count = 0;
  while (count < order.size() && (count == 0 || kept < options.top_p * total)) kept += weight[count++];

  const PhiloxCounter words =
      philox({static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32), 0x73616d70u, 0},
             philox_key(options.seed));
  double left = uniform01(words[0]) * kept;
  for (std::size_t i = 0; i < count; ++i) {
    left -= weight[i];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

}  // namespace drivetrain
