#include "runtime/diagnosis/blame.h"

#include <algorithm>
#include <map>

#include "runtime/diagnosis/text.h"

namespace drivetrain {
namespace {

// Below half, more of its lateness is its own doing than others'.
constexpr double kInherited = 0.5;

// The longest waiting of one rank and the rank it names most, weighted by time.
BlameStep longest_wait(const Window& window, int rank, std::span<const std::size_t> steps) {
  BlameStep longest;
  const auto& rows = window.ranks[static_cast<std::size_t>(rank)];
  for (std::size_t a = 0; a < kCommAxes; ++a) {
    const auto axis = static_cast<CommAxis>(a);
    double waits = 0;
    std::map<int, double> named;
    const std::size_t count = steps.empty() ? rows.size() : steps.size();
    for (std::size_t i = 0; i < count; ++i) {
      const StepRecord& row = rows[steps.empty() ? i : steps[i]];
      waits += wait_ms(row, axis);
      if (row.axes[a].culprit >= 0 && row.axes[a].culprit < window.size())
        named[row.axes[a].culprit] += static_cast<double>(row.axes[a].culprit_ns);
    }
    named.erase(rank);
    if (named.empty() || count == 0) continue;
    const auto by_time = [](const auto& x, const auto& y) { return x.second < y.second; };
    const int culprit = std::max_element(named.begin(), named.end(), by_time)->first;
    waits /= static_cast<double>(count);
    if (waits > longest.waits_ms) longest = {.rank = rank, .axis = axis, .culprit = culprit, .waits_ms = waits};
  }
  return longest;
}

}  // namespace

std::vector<BlameStep> blame_path(const Window& window, int from, std::span<const std::size_t> steps) {
  std::vector<BlameStep> path;
  std::vector<bool> seen(static_cast<std::size_t>(window.size()), false);
  for (int rank = from;;) {
    const BlameStep next = longest_wait(window, rank, steps);
    if (next.culprit < 0) break;
    if (!path.empty() && next.waits_ms < kInherited * path.back().waits_ms) break;
    seen[static_cast<std::size_t>(rank)] = true;
    if (seen[static_cast<std::size_t>(next.culprit)]) break;
    path.push_back(next);
    rank = next.culprit;
  }
  return path;
}

std::string to_text(std::span<const BlameStep> path, const std::string& end) {
  if (path.empty()) return {};
  std::string text = "rank " + std::to_string(path.front().rank) + " waits " + in_ms(path.front().waits_ms) + " in " +
                     meeting_place(path.front().axis);
  for (std::size_t i = 0; i < path.size(); ++i) {
    text += " <- ";
    if (i > 0) text += std::string("its ") + (path[i].axis == CommAxis::kTp ? "tp peer " : "peer ");
    text += "rank " + std::to_string(path[i].culprit) + " came late";
  }
  return end.empty() ? text : text + " <- " + end;
}

const char* meeting_place(CommAxis axis) {
  switch (axis) {
    case CommAxis::kTp:
      return "tp collectives";
    case CommAxis::kDp:
      return "the dp gradient reduction";
    case CommAxis::kWorld:
      break;
  }
  return "the step's exchange of all ranks";
}

}  // namespace drivetrain
