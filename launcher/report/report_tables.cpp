#include "launcher/report/report_tables.h"

#include <algorithm>

#include "launcher/report/svg.h"
#include "runtime/diagnosis/text.h"

namespace drivetrain {

std::string element(const std::string& tag, const std::string& text, const std::string& css) {
  return "<" + tag + (css.empty() ? "" : " class=\"" + css + "\"") + ">" + escaped(text) + "</" + tag + ">\n";
}

std::string list(const std::vector<std::string>& lines) {
  std::string items;
  for (const std::string& line : lines) items += element("li", line);
  return items.empty() ? "" : "<ul class=\"plain\">\n" + items + "</ul>\n";
}

namespace {

constexpr std::size_t kMostTableRows = 256;

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>";
  for (const std::string& cell : head) text += "<th scope=\"col\">" + escaped(cell) + "</th>";
  text += "</tr></thead><tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += "<td>" + escaped(cell) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string folded(const std::string& summary, const std::string& body) {
  return "<details><summary>" + escaped(summary) + "</summary>\n" + body + "</details>\n";
}

}  // namespace

std::string class_table(const RunReport& report) {
  std::vector<std::string> head{"rank", "host", "step ms", "waits ms", "caused ms", "work"};
  std::vector<std::size_t> shown;
  for (std::size_t c = 0; c < kTimeClasses; ++c) {
    const auto spent = [&](const RankSummary& rank) { return rank.class_ms[c] > 0; };
    if (std::none_of(report.ranks.begin(), report.ranks.end(), spent)) continue;
    shown.push_back(c);
    head.emplace_back(name(static_cast<TimeClass>(c)));
  }
  head.emplace_back("in no class");
  std::vector<std::vector<std::string>> rows;
  for (const RankSummary* rank : notable_ranks(report, kMostTableRows)) {
    std::vector<std::string> row{std::to_string(rank->rank), rank->host,
                                 fixed(rank->step_ms, 2),    fixed(rank->waits_ms, 2),
                                 fixed(rank->caused_ms, 2),  fixed(rank->load, 3)};
    for (const std::size_t c : shown) row.push_back(fixed(rank->class_ms[c], 2));
    row.push_back(fixed(rank->residual_ms, 3));
    rows.push_back(std::move(row));
  }
  return folded("Table of all classes, ms per step", table(head, rows));
}

std::string collective_table(const RunReport& report) {
  std::vector<std::vector<std::string>> rows;
  for (const LinkSummary& link : report.links) {
    if (rows.size() == kMostTableRows) break;
    std::string ranks;
    for (std::size_t i = 0; i < std::min<std::size_t>(link.ranks.size(), 16); ++i)
      ranks += (i ? ", " : "") + std::to_string(link.ranks[i]);
    if (link.ranks.size() > 16) ranks += ", ...";
    rows.push_back({std::string(name(link.axis)) + " {" + ranks + "}", fixed(link.calls, 1),
                    fixed(link.bytes * 1e-6, 3), fixed(link.in_flight_ms, 2), fixed(link.gb_per_s(), 2)});
  }
  if (rows.empty()) return "";
  return table({"group", "calls", "MB", "ms in flight", "GB/s"}, rows) + list(report.link_remarks);
}

std::string link_matrix(const RunReport& report) {
  std::vector<std::string> devices;
  for (const DevicePair& pair : report.pairs)
    for (const std::string& device : {pair.a, pair.b})
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  if (devices.empty()) return "";
  std::vector<std::string> head{"device"};
  head.insert(head.end(), devices.begin(), devices.end());
  std::vector<std::vector<std::string>> rows;
  for (const std::string& from : devices) {
    rows.push_back({from});
    for (const std::string& to : devices) {
      const auto found = std::find_if(report.pairs.begin(), report.pairs.end(), [&](const DevicePair& pair) {
        return (pair.a == from && pair.b == to) || (pair.a == to && pair.b == from);
      });
      std::string cell = from == to ? "" : "?";
      if (found != report.pairs.end() && from != to) {
        cell = found->nvlinks > 0 ? "NV" + std::to_string(found->nvlinks) : found->path;
        if (found->peer_to_peer && !*found->peer_to_peer) cell += ", no P2P";
      }
      rows.back().push_back(cell);
    }
  }
  return table(head, rows);
}

}  // namespace drivetrain
