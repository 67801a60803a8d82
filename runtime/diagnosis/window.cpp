#include "runtime/diagnosis/window.h"

#include <algorithm>
#include <array>

#include "kernels/error.h"

namespace drivetrain {
namespace {

constexpr std::array<TimeClass, kCommAxes> kWaits{TimeClass::kTpWait, TimeClass::kDpWait, TimeClass::kWorldWait};
constexpr std::array<TimeClass, kCommAxes> kTransfers{TimeClass::kTpTransfer, TimeClass::kDpTransfer,
                                                      TimeClass::kWorldTransfer};

double ms(std::int64_t ns) {
  return static_cast<double>(ns) * kMsPerNs;
}

}  // namespace

const std::string& Window::host(int rank) const {
  static const std::string none;
  const auto at = static_cast<std::size_t>(rank);
  return at < hosts.size() ? hosts[at] : none;
}

void check(const Window& window) {
  if (window.dp < 1 || window.tp < 1 || window.size() != window.dp * window.tp)
    throw Error(ErrorKind::kData, "rows of " + std::to_string(window.size()) + " ranks do not fill dp " +
                                      std::to_string(window.dp) + " x tp " + std::to_string(window.tp));
  const auto& first = window.ranks.front();
  for (int r = 1; r < window.size(); ++r) {
    const auto& rows = window.ranks[static_cast<std::size_t>(r)];
    if (rows.size() != first.size())
      throw Error(ErrorKind::kData, "rank " + std::to_string(r) + " has " + std::to_string(rows.size()) +
                                        " steps, rank 0 has " + std::to_string(first.size()) +
                                        "; take the steps that all ranks have");
    for (std::size_t s = 0; s < rows.size(); ++s)
      if (rows[s].step != first[s].step)
        throw Error(ErrorKind::kData, "rank " + std::to_string(r) + " has step " + std::to_string(rows[s].step) +
                                          " where rank 0 has step " + std::to_string(first[s].step));
  }
}

std::vector<std::span<const StepRecord>> common_steps(const std::vector<std::vector<StepRecord>>& rows) {
  std::vector<std::span<const StepRecord>> result;
  std::int64_t first = INT64_MIN, last = INT64_MAX;
  for (const auto& rank : rows) {
    first = std::max(first, rank.empty() ? INT64_MAX : rank.front().step);
    last = std::min(last, rank.empty() ? INT64_MIN : rank.back().step);
  }
  for (const auto& rank : rows) {
    const auto by_step = [](const StepRecord& row, std::int64_t step) { return row.step < step; };
    const auto from = std::lower_bound(rank.begin(), rank.end(), first, by_step);
    const auto to = first > last ? from : std::lower_bound(from, rank.end(), last + 1, by_step);
    result.emplace_back(from, to);
  }
  return result;
}

std::vector<int> group_of(const Window& window, CommAxis axis, int rank) {
  std::vector<int> group;
  const int dp_rank = rank / window.tp, tp_rank = rank % window.tp;
  for (int r = 0; r < window.size(); ++r) {
    const bool member = axis == CommAxis::kWorld || (axis == CommAxis::kTp && r / window.tp == dp_rank) ||
                        (axis == CommAxis::kDp && r % window.tp == tp_rank);
    if (member) group.push_back(r);
  }
  return group;
}

double wait_ms(const StepRecord& row, CommAxis axis) {
  return ms(row.at(kWaits[static_cast<std::size_t>(axis)]));
}

double wait_ms(const StepRecord& row) {
  double sum = 0;
  for (const TimeClass c : kWaits) sum += ms(row.at(c));
  return sum;
}

double transfer_ms(const StepRecord& row) {
  double sum = 0;
  for (const TimeClass c : kTransfers) sum += ms(row.at(c));
  return sum;
}

double local_ms(const StepRecord& row) {
  return ms(row.wall_ns) - wait_ms(row) - transfer_ms(row);
}

}  // namespace drivetrain
