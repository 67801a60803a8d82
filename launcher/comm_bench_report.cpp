#include "launcher/comm_bench_report.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "launcher/version.h"
#include "runtime/comm/call_record.h"

namespace drivetrain {
namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  char line[256];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(line, sizeof line, pattern, values);
  va_end(values);
  return line;
}

// Microseconds in eight columns, whatever their size.
std::string time_text(double seconds) {
  const double us = seconds * 1e6;
  return us < 1000 ? format("%9.2f", us) : us < 100000 ? format("%9.1f", us) : format("%9.0f", us);
}

std::string hosts_text(const BenchPlace& place) {
  std::set<std::string> names;
  for (const RankSite& site : place.sites) names.insert(site.host);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  if (list.size() > 25) list = list.substr(0, 22) + "...";
  return std::to_string(place.hosts) + (place.hosts == 1 ? " host (" : " hosts (") + list + ")";
}

bool against_mpi(const BenchRequest& request) {
  return request.against == BenchRequest::Against::kMpi;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

void put_times(nlohmann::ordered_json& json, const std::string& prefix, const Spread& seconds) {
  json[prefix + "time_us"] = seconds.median * 1e6;
  json[prefix + "min_us"] = seconds.min * 1e6;
  json[prefix + "max_us"] = seconds.max * 1e6;
  json[prefix + "p10_us"] = seconds.p10 * 1e6;
  json[prefix + "p90_us"] = seconds.p90 * 1e6;
}

}  // namespace

std::string place_text(const BenchRequest& request, const BenchFacts& facts) {
  const BenchPlace& place = facts.place;
  const bool sweep = request.measure == BenchRequest::Measure::kSweep;
  return format("# drivetrain %s comm bench: %zu ranks, %s, %d processors, load %.0f\n", version(),
                place.sites.size(), hosts_text(place).c_str(), place.processors, load_average()) +
         "# transport " + place.transport + " (" + place.reason + ")" +
         (sweep ? std::string(", ") + name(request.memory) + " memory\n" : "\n");
}

std::string header_text(const BenchRequest& request, const BenchFacts& facts) {
  const bool single = request.timing == BenchRequest::Timing::kSingle;
  std::string text = place_text(request, facts);
  text += single
              ? "# time: one call on the slowest rank, in us; median, 10th and 90th percentile of the iterations;\n"
                "#   each buffer is freshly written by its owner before each call, warm-up is left out\n"
              : "# time: many calls in a row divided by their number, on the slowest rank, in us; median, 10th and\n"
                "#   90th percentile of 5 such rows, warm-up is left out\n";
  text +=
      "# GB/s = 1e9 bytes/s of the whole tensor; busbw = algbw x 2(n-1)/n for all_reduce, (n-1)/n for\n"
      "#   all_gather, reduce_scatter and all_to_all, 1 for the others (docs/collectives.md)\n";
  if (against_mpi(request))
    text += "# against " + facts.mpi.library + ", settings " + facts.mpi.settings +
            ", alternating; ratio = MPI's time / ours\n";
  text += "# mem% = time in which all ranks at once read and write as many bytes of their own, in turn, / time\n";
  return text;
}

std::string block_text(const BenchRequest& request, const BenchRow& row) {
  const BenchCase& what = row.what;
  std::string text = std::string("\n# ") + name(what.op);
  if (what.op != BenchOp::kBarrier) text += std::string(" ") + name(what.dtype);
  if (reduces(what.op)) text += std::string(" ") + name(what.reduce);
  if (what.op != BenchOp::kBarrier) text += what.placing == Placing::kInPlace ? ", in place" : ", out of place";
  text += "\n#     bytes       count   time us       p10       p90   algbw   busbw  wrong";
  if (against_mpi(request)) text += "    MPI us  ratio";
  return text + "  mem%\n";
}

std::string row_text(const BenchRequest& request, const BenchRow& row) {
  const BenchCase& what = row.what;
  const auto bytes = static_cast<double>(what.bytes());
  const double speed = algorithm_gbps(bytes, row.seconds.median);
  const int ranks = row.ranks;
  std::string text = format("%11zu %11lld ", what.bytes(), static_cast<long long>(what.count)) +
                     time_text(row.seconds.median) + " " + time_text(row.seconds.p10) + " " +
                     time_text(row.seconds.p90) +
                     format(" %7.2f %7.2f %6s", speed, speed * bus_factor(what.op, ranks),
                            request.check == BenchRequest::Check::kOn ? std::to_string(row.wrong).c_str() : "-");
  if (row.mpi) text += " " + time_text(row.mpi->median) + format(" %6.2f", row.ratio());
  text += row.stream ? format(" %5.0f", 100 * row.ceiling_share()) : "     -";
  return text + "\n";
}

nlohmann::ordered_json meta_json(const BenchRequest& request, const BenchFacts& facts) {
  nlohmann::ordered_json meta = {
      {"version", version()},
      {"ranks", facts.place.sites.size()},
      {"hosts", facts.place.hosts},
      {"processors", facts.place.processors},
      {"load", load_average()},
      {"transport", facts.place.transport},
      {"transport_reason", facts.place.reason},
      {"memory", name(request.memory)},
      {"timing", request.timing == BenchRequest::Timing::kSingle ? "single" : "back-to-back"},
      {"warmup", request.warmup},
      {"checked", request.check == BenchRequest::Check::kOn},
      {"mpi", nullptr},
  };
  for (const RankSite& site : facts.place.sites) meta["rank_hosts"].push_back(site.host);
  if (!facts.mpi.library.empty()) {
    meta["mpi"] = {
        {"library", facts.mpi.library}, {"settings", facts.mpi.settings}, {"parameters", facts.mpi.parameters}};
  }
  return meta;
}

nlohmann::ordered_json row_json(const BenchRow& row) {
  const BenchCase& what = row.what;
  const double speed = algorithm_gbps(static_cast<double>(what.bytes()), row.seconds.median);
  nlohmann::ordered_json json = {{"op", name(what.op)},         {"dtype", name(what.dtype)},
                                 {"reduce", nullptr},           {"bytes", what.bytes()},
                                 {"count", what.count},         {"in_place", what.placing == Placing::kInPlace},
                                 {"iterations", row.iterations}};
  if (reduces(what.op)) json["reduce"] = name(what.reduce);
  put_times(json, "", row.seconds);
  json["algbw_gbps"] = speed;
  json["busbw_gbps"] = speed * bus_factor(what.op, row.ranks);
  json["wrong"] = row.wrong;
  if (row.mpi) {
    put_times(json, "mpi_", *row.mpi);
    json["mpi_wrong"] = row.mpi_wrong;
    json["ratio"] = row.ratio();
  }
  if (row.stream) {
    json["stream_gbps"] = row.stream_bytes_per_s() / 1e9;
    json["ceiling_share"] = row.ceiling_share();
  }
  return json;
}

}  // namespace drivetrain
