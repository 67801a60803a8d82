#include "runtime/metrics.h"

#include <charconv>
#include <cmath>
#include <string_view>
#include <system_error>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::string_view kStepKey = "{\"step\": ";

// Shortest text that reads back as the same double; JSON knows no NaN or infinity.
std::string number(double x) {
  if (!std::isfinite(x)) return "null";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, x).ptr;
  return {text, end};
}

std::string evaluation_text(double loss, double perplexity) {
  return ", \"eval_loss\": " + number(loss) + ", \"eval_perplexity\": " + number(perplexity);
}

Error cannot_write(const std::filesystem::path& file) {
  return Error(ErrorKind::kIo, "cannot write " + file.string() + ": is the disk full?");
}

std::optional<std::int64_t> step_of(std::string_view line) {
  if (!line.starts_with(kStepKey) || !line.ends_with("}")) return std::nullopt;
  std::int64_t step = 0;
  const char* begin = line.data() + kStepKey.size();
  if (std::from_chars(begin, line.data() + line.size(), step).ec != std::errc()) return std::nullopt;
  return step;
}

}  // namespace

std::string to_json(const MetricsRow& r) {
  std::string s(kStepKey);
  s += std::to_string(r.step);
  const auto real = [&](const char* key, double x) { s += ", \"" + std::string(key) + "\": " + number(x); };
  const auto whole = [&](const char* key, std::int64_t x) {
    s += ", \"" + std::string(key) + "\": " + std::to_string(x);
  };
  real("loss", r.loss);
  real("lr", r.lr);
  real("grad_norm", r.grad_norm);
  whole("tokens", r.tokens);
  real("tokens_per_s", r.tokens_per_s);
  real("mfu", r.mfu.value_or(std::nan("")));
  real("step_ms", r.step_ms);
  whole("samples", r.samples);
  whole("targets", r.targets);
  real("data_wait_ms", r.data_wait_ms);
  real("loss_scale", r.loss_scale);
  whole("skipped", r.skipped_reason.empty() ? 0 : 1);
  if (!r.skipped_reason.empty()) s += ", \"skipped_reason\": \"" + r.skipped_reason + "\"";
  if (r.eval_loss && r.eval_perplexity) s += evaluation_text(*r.eval_loss, *r.eval_perplexity);
  return s + "}";
}

MetricsFile::MetricsFile(std::filesystem::path file) : file_(std::move(file)) {
  out_.open(file_, std::ios::app);
  if (!out_) throw Error(ErrorKind::kIo, "cannot write " + file_.string() + ": check the folder and its permissions");
}

void MetricsFile::keep_until(std::int64_t step) {
  std::ifstream in(file_);
  std::uintmax_t keep = 0;
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    const auto row_step = step_of(line);
    if (!row_step || *row_step > step) break;
    keep += line.size() + 1;
  }
  in.close();
  std::error_code failed;
  std::filesystem::resize_file(file_, keep, failed);
  if (failed) throw Error(ErrorKind::kIo, "cannot shorten " + file_.string() + ": " + failed.message());
}

void MetricsFile::add_evaluation(double eval_loss, double eval_perplexity) {
  const std::uintmax_t size = std::filesystem::file_size(file_);
  if (size < 2) return;
  std::filesystem::resize_file(file_, size - 2);  // its "}\n"
  out_ << evaluation_text(eval_loss, eval_perplexity) << "}\n" << std::flush;
  if (!out_) throw cannot_write(file_);
}

void MetricsFile::append(const MetricsRow& row) {
  out_ << to_json(row) << '\n' << std::flush;
  if (!out_) throw cannot_write(file_);
}

}  // namespace drivetrain
