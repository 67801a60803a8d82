#include "launcher/report/step_range.h"

#include <unistd.h>

#include <charconv>
#include <fstream>

#include "kernels/error.h"

namespace drivetrain {
namespace {

std::int64_t step_of(const std::string& word, const std::string& text) {
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), step);
  if (error != std::errc() || end != word.data() + word.size() || step < 0)
    throw Error(ErrorKind::kUsage, "--steps " + text + ": wants A:B with whole numbers, as in 100:200, 100: or :200");
  return step;
}

}  // namespace

StepRange step_range(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return {step_of(text, text), step_of(text, text)};
  StepRange range;
  if (colon > 0) range.first = step_of(text.substr(0, colon), text);
  if (colon + 1 < text.size()) range.last = step_of(text.substr(colon + 1), text);
  if (range.first > range.last)
    throw Error(ErrorKind::kUsage, "--steps " + text + ": the first step is after the last");
  return range;
}

void write_whole_file(const std::filesystem::path& file, const std::string& text) {
  const std::filesystem::path draft = file.string() + ".part" + std::to_string(getpid());
  std::ofstream out(draft, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(draft, file, error);
  if (!out || error) throw Error(ErrorKind::kIo, file.string() + ": cannot be written");
}

}  // namespace drivetrain
