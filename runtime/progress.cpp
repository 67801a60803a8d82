#include "runtime/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace drivetrain {
namespace {

constexpr std::size_t kBarWidth = 10;

template <class... Args>
std::string format(const char* pattern, Args... args) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, args...);
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<long long>(std::clamp(seconds, 0.0, 1e10) + 0.5);
  if (s < 60) return format("%llds", s);
  if (s < 3600) return format("%lldm%02llds", s / 60, s % 60);
  if (s < 86400) return format("%lldh%02lldm", s / 3600, s / 60 % 60);
  return format("%lldd%02lldh", s / 86400, s / 3600 % 24);
}

std::string progress_text(const ProgressPoint& p) {
  std::string s = format("step %lld/%lld", static_cast<long long>(p.step), static_cast<long long>(p.total));
  s += format(", loss %.4f, lr %.2e, norm %.3f, %.0f tokens/s", p.loss, p.lr, p.grad_norm, p.tokens_per_s);
  if (p.mfu) s += format(", MFU %.1f %%", 100 * *p.mfu);
  if (p.eval_loss) s += format(", held-out loss %.4f (perplexity %.2f)", *p.eval_loss, std::exp(*p.eval_loss));
  if (!p.skipped_reason.empty()) s += ", update skipped: " + p.skipped_reason;
  if (p.left_s) s += ", " + duration_text(*p.left_s) + " left";
  return s;
}

// The same in fewer characters, for 80 columns.
static std::string bar_text(const ProgressPoint& p) {
  std::string s = format("%lld/%lld", static_cast<long long>(p.step), static_cast<long long>(p.total));
  s += format(" loss %.4f lr %.1e norm %.2f %.0f tok/s", p.loss, p.lr, p.grad_norm, p.tokens_per_s);
  if (p.mfu) s += format(" MFU %.1f%%", 100 * *p.mfu);
  if (p.left_s) s += " " + duration_text(*p.left_s) + " left";
  return s;
}

void Progress::show(const ProgressPoint& p) {
  if (mode_ == Mode::kOff) return;
  const bool notable = p.step == p.total || p.eval_loss || !p.skipped_reason.empty();
  if (mode_ == Mode::kLines) {
    if (notable || p.step % std::max<std::int64_t>(1, every_) == 0) out_ << progress_text(p) << '\n' << std::flush;
    return;
  }
  const double share = p.total > 0 ? static_cast<double>(p.step) / static_cast<double>(p.total) : 0;
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth);
  std::string line = "[";
  line.append(full, '#').append(kBarWidth - full, '.').append("] ").append(notable ? progress_text(p) : bar_text(p));
  if (columns_ > 1 && !notable && line.size() >= static_cast<std::size_t>(columns_))
    line.resize(static_cast<std::size_t>(columns_ - 1));
  const std::size_t length = line.size();
  if (length < drawn_) line.append(drawn_ - length, ' ');
  drawn_ = length;
  out_ << '\r' << line << std::flush;
  if (notable) end_line();
}

void Progress::end_line() {
  if (drawn_ > 0) out_ << '\n' << std::flush;
  drawn_ = 0;
}

Progress::Mode progress_mode(const std::string& wanted, int columns) {
  if (wanted == "bar") return Progress::Mode::kBar;
  if (wanted == "lines") return Progress::Mode::kLines;
  if (wanted == "off") return Progress::Mode::kOff;
  return columns > 0 ? Progress::Mode::kBar : Progress::Mode::kLines;
}

}  // namespace drivetrain
