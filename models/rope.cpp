#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace drivetrain {
namespace {

double llama3(double f, const RopeScaling& s) {
  const double wavelength = 2 * std::numbers::pi / f;
  const double original = static_cast<double>(s.original_positions);
  if (wavelength > original / s.low_freq_factor) return f / s.factor;
  if (wavelength < original / s.high_freq_factor) return f;
  const double smooth = (original / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
  return (1 - smooth) * f / s.factor + smooth * f;
}

// Dimension at which a rotation of `turns` full turns over the original context lies.
double yarn_dimension(double turns, const ModelConfig& c) {
  const double original = static_cast<double>(c.rope.original_positions);
  return static_cast<double>(c.head_dim) * std::log(original / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(c.rope_theta));
}

double yarn(double f, std::int64_t i, const ModelConfig& c) {
  const double last = static_cast<double>(c.head_dim - 1);
  const double low = std::max(std::floor(yarn_dimension(c.rope.beta_fast, c)), 0.0);
  double high = std::min(std::ceil(yarn_dimension(c.rope.beta_slow, c)), last);
  if (low == high) high += 0.001;
  const double interpolate = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
  return interpolate * f / c.rope.factor + (1 - interpolate) * f;
}

}  // namespace

std::vector<double> rope_frequencies(const ModelConfig& config) {
  const std::int64_t half = config.head_dim / 2;
  std::vector<double> out(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    double f = std::pow(config.rope_theta, -exponent);
    switch (config.rope.kind) {
      case RopeScaling::Kind::kNone:
        break;
      case RopeScaling::Kind::kLinear:
        f /= config.rope.factor;
        break;
      case RopeScaling::Kind::kLlama3:
        f = llama3(f, config.rope);
        break;
      case RopeScaling::Kind::kYarn:
        f = yarn(f, i, config);
        break;
    }
    out[static_cast<std::size_t>(i)] = f;
  }
  return out;
}

double rope_attention_factor(const ModelConfig& config) {
  if (config.rope.kind != RopeScaling::Kind::kYarn) return 1;
  if (config.rope.attention_factor > 0) return config.rope.attention_factor;
  return config.rope.factor <= 1 ? 1 : 0.1 * std::log(config.rope.factor) + 1;
}

RopeTable::RopeTable(Device& device, const ModelConfig& config, std::int64_t positions) {
  const std::vector<double> frequencies = rope_frequencies(config);
  const double factor = rope_attention_factor(config);
  const auto half = static_cast<std::int64_t>(frequencies.size());
  std::vector<float> host(static_cast<std::size_t>(2 * positions * half));
  for (std::int64_t p = 0; p < positions; ++p)
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(p) * static_cast<float>(frequencies[static_cast<std::size_t>(i)]);
      const auto at = static_cast<std::size_t>(p * half + i);
      host[at] = static_cast<float>(std::cos(static_cast<double>(angle)) * factor);
      host[at + static_cast<std::size_t>(positions * half)] =
          static_cast<float>(std::sin(static_cast<double>(angle)) * factor);
    }
  buffer_ = Buffer(device, host.size() * sizeof(float));
  Tensor all(buffer_.data(), DType::kF32, {2 * positions, half});
  device.upload(all, std::as_bytes(std::span(host)));
  cos_ = all.rows(0, positions);
  sin_ = all.rows(positions, 2 * positions);
}

}  // namespace drivetrain
