#include "runtime/peaks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace drivetrain {
namespace {

// Data sheets give the sparse figure for the H100 and later; here is half of it. The tools are those whose MFU tables
// hold the same number: llm.c mfu.h, torchtitan utils.py, composer speed_monitor, ml-engineering accelerator table.
constexpr std::array kPeaks{
    DevicePeak{"V100", 125, "NVIDIA V100 data sheet, FP16; llm.c, composer", true},
    DevicePeak{"A100", 312, "NVIDIA A100 data sheet; llm.c, torchtitan, composer"},
    DevicePeak{"A10G", 70, "NVIDIA A10G on AWS, dense; composer's 125 is the A10's"},
    DevicePeak{"A10", 125, "NVIDIA A10 data sheet; composer"},
    DevicePeak{"RTX A6000", 154.85, "NVIDIA RTX A6000 data sheet, half of 309.7 sparse; torchtitan"},
    DevicePeak{"L40S", 362, "NVIDIA L40S data sheet; torchtitan, ml-engineering"},
    DevicePeak{"RTX 3090", 71, "GA102 white paper, FP32 accumulation; llm.c"},
    DevicePeak{"RTX 4090", 165.2, "Ada white paper, FP32 accumulation (330.3 with FP16); llm.c"},
    DevicePeak{"H100 PCIe", 756, "NVIDIA H100 data sheet, half of 1513 sparse; llm.c, torchtitan"},
    DevicePeak{"H100 NVL", 835, "NVIDIA H100 NVL data sheet, half of 1671 sparse; torchtitan"},
    DevicePeak{"H100 SXM", 989.4, "NVIDIA H100 data sheet, half of 1979 sparse; llm.c, torchtitan, composer"},
    DevicePeak{"H200 NVL", 835, "NVIDIA H200 data sheet, half of 1671 sparse"},
    DevicePeak{"H200 SXM", 989.4, "NVIDIA H200 data sheet, half of 1979 sparse; torchtitan, ml-engineering"},
    DevicePeak{"GH200", 989.4, "NVIDIA GH200 data sheet, half of 1979 sparse; ml-engineering"},
    DevicePeak{"H20", 148, "torchtitan"},
    DevicePeak{"B200", 2250, "NVIDIA HGX B200, half of 4500 sparse; torchtitan, ml-engineering"},
    DevicePeak{"B300", 2250, "torchtitan, ml-engineering"},
    DevicePeak{"GB200", 2500, "NVIDIA GB200, half of 5000 sparse; torchtitan, ml-engineering (NVIDIA dgxc: 2450)"},
    DevicePeak{"GB300", 2500, "torchtitan, ml-engineering (NVIDIA dgxc: 2450)"},
};

// All of these words must be in the name, and none of `without`.
struct Match {
  std::string_view device;
  std::vector<std::string_view> words;
  std::vector<std::string_view> without = {};
};
const std::vector<Match>& matches() {
  // Boards that NVML names without "SXM" are the SXM ones.
  static const std::vector<Match> rows{
      {"V100", {"v100"}},
      {"A100", {"a100"}},
      {"A10G", {"a10g"}},
      {"A10", {"a10"}},
      {"RTX A6000", {"rtx", "a6000"}},
      {"L40S", {"l40s"}},
      {"RTX 3090", {"rtx", "3090"}},
      {"RTX 4090", {"rtx", "4090"}},
      {"H100 PCIe", {"h100", "pcie"}},
      {"H100 NVL", {"h100", "nvl"}},
      {"H100 SXM", {"h100"}, {"pcie", "nvl"}},
      {"H200 NVL", {"h200", "nvl"}},
      {"H200 SXM", {"h200"}, {"pcie", "nvl"}},
      {"GH200", {"gh200"}},
      {"H20", {"h20"}},
      {"B200", {"b200"}},
      {"B300", {"b300"}},
      {"GB200", {"gb200"}},
      {"GB300", {"gb300"}},
  };
  return rows;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// Words that do not change the arithmetic: vendor, form factor, size and kind of memory. Any other word may ("Ti", "D",
// "Laptop", "MIG", "Max-Q"), so a name with one is unknown.
bool harmless(const std::string& word) {
  static constexpr std::array<std::string_view, 13> kKnown{
      "nvidia", "tesla", "geforce", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "pcie", "hgx", "ac", "gpu"};
  if (std::find(kKnown.begin(), kKnown.end(), word) != kKnown.end()) return true;
  if (word.rfind("hbm", 0) == 0) return true;
  const auto digits = static_cast<std::size_t>(
      std::find_if_not(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); }) - word.begin());
  return digits > 0 && word.substr(digits) == "gb";
}

bool matches_row(const std::vector<std::string>& words, const Match& row) {
  const auto in = [](const auto& all, std::string_view word) {
    return std::find(all.begin(), all.end(), word) != all.end();
  };
  for (const std::string_view w : row.words)
    if (!in(words, w)) return false;
  for (const std::string_view w : row.without)
    if (in(words, w)) return false;
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& w) { return in(row.words, w) || harmless(w); });
}

}  // namespace

std::span<const DevicePeak> known_peaks() {
  return kPeaks;
}

std::optional<DevicePeak> known_peak(std::string_view device_name) {
  const std::vector<std::string> words = words_of(device_name);
  for (const Match& row : matches()) {
    if (!matches_row(words, row)) continue;
    for (const DevicePeak& p : kPeaks)
      if (p.device == row.device) return p;
  }
  return std::nullopt;
}

}  // namespace drivetrain
