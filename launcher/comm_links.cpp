#include "launcher/comm_links.h"

#include <chrono>
#include <cstdio>
#include <functional>
#include <map>

#include "runtime/comm/bench_math.h"

namespace drivetrain {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMatrixRanks = 11;  // 100 columns

// One pair plays ping-pong; both ranks run this at the same time, `first` with the clock.
class PingPong {
 public:
  PingPong(Communicator& world, int peer, bool first) : world_(world), peer_(peer), first_(first) {}

  // Median seconds of a round trip on the first rank, 0 on the other. Ends after `rounds`, or when `patience` is over.
  double median_round_trip(const Tensor& x, int rounds, double patience_s) {
    std::vector<double> seconds;
    const auto start = Clock::now();
    for (int i = -2; i < rounds; ++i) {
      if (!agree(i <= 0 || std::chrono::duration<double>(Clock::now() - start).count() < patience_s)) break;
      const auto begin = Clock::now();
      if (first_) world_.send(x, peer_).wait();
      world_.recv(x, peer_).wait();
      if (!first_) world_.send(x, peer_).wait();
      if (i >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return first_ ? spread_of(seconds).median : 0;
  }

 private:
  // The first rank's word.
  bool agree(bool more) {
    std::int32_t word = more ? 1 : 0;
    const Tensor x(&word, DType::kI32, {1});
    if (first_)
      world_.send(x, peer_).wait();
    else
      world_.recv(x, peer_).wait();
    return word != 0;
  }

  Communicator& world_;
  int peer_;
  bool first_;
};

std::string cell(double value) {
  char text[24];
  std::snprintf(text, sizeof text, value < 10 ? "%8.2f" : value < 1000 ? "%8.1f" : "%8.0f", value);
  return text;
}

std::string word_cell(const std::string& word) {
  char text[24];
  std::snprintf(text, sizeof text, "%8.7s", word.c_str());
  return text;
}

using CellOf = std::function<std::string(const LinkFigure&)>;

std::string matrix(const std::string& title, const std::vector<LinkFigure>& links, int ranks, const CellOf& cell_of) {
  std::vector<std::string> cells(static_cast<std::size_t>(ranks * ranks), word_cell("-"));
  for (const LinkFigure& link : links) {
    cells[static_cast<std::size_t>(link.a * ranks + link.b)] = cell_of(link);
    cells[static_cast<std::size_t>(link.b * ranks + link.a)] = cell_of(link);
  }
  std::string text = "\n# " + title + "\n# rank ";
  for (int c = 0; c < ranks; ++c) text += word_cell(std::to_string(c));
  text += "\n";
  for (int r = 0; r < ranks; ++r) {
    text += word_cell(std::to_string(r)).substr(1);
    for (int c = 0; c < ranks; ++c) text += cells[static_cast<std::size_t>(r * ranks + c)];
    text += "\n";
  }
  return text;
}

std::string summary(const std::vector<LinkFigure>& links) {
  struct Figures {
    std::vector<double> latency_us, gbps;
  };
  std::map<std::string, Figures> kinds;
  for (const LinkFigure& link : links) {
    kinds[link.kind].latency_us.push_back(link.latency_s * 1e6);
    kinds[link.kind].gbps.push_back(link.bytes_per_s / 1e9);
  }
  std::string text = "\n# kind      links   us median       min       max   GB/s median       min       max\n";
  for (const auto& [kind, figures] : kinds) {
    const Spread us = spread_of(figures.latency_us), gbps = spread_of(figures.gbps);
    char line[128];
    std::snprintf(line, sizeof line, "  %-9s %5zu %11.2f %9.2f %9.2f %13.3f %9.3f %9.3f\n", kind.c_str(),
                  figures.gbps.size(), us.median, us.min, us.max, gbps.median, gbps.min, gbps.max);
    text += line;
  }
  return text;
}

}  // namespace

std::vector<LinkFigure> measure_links(Communicator& world, const BenchPlace& place) {
  const int n = world.size(), me = world.rank();
  std::vector<std::byte> memory(kLinkMessageBytes);
  const auto bytes = static_cast<std::int64_t>(memory.size());
  const Tensor large(memory.data(), DType::kU8, {bytes}), small = large.flat(0, 8);
  std::vector<double> figures(
      static_cast<std::size_t>(n * n * 2));  // latency and seconds of a large message, by pair
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      if (me == a || me == b) {
        PingPong pair(world, me == a ? b : a, me == a);
        double* const at = figures.data() + static_cast<std::size_t>((a * n + b) * 2);
        at[0] = pair.median_round_trip(small, 300, 0.2) / 2;
        at[1] = pair.median_round_trip(large, 15, 0.5) / 2;
      }
      world.barrier();
    }
  }
  const auto count = static_cast<std::int64_t>(figures.size());
  world.all_reduce(Tensor(figures.data(), DType::kF64, {count}), ReduceOp::kMax).wait();
  std::vector<LinkFigure> links;
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      const double* const at = figures.data() + static_cast<std::size_t>((a * n + b) * 2);
      const std::string kind = link_kind(place.sites[static_cast<std::size_t>(a)],
                                         place.sites[static_cast<std::size_t>(b)], place.transport);
      links.push_back({a, b, kind, at[0], static_cast<double>(bytes) / at[1]});
    }
  }
  return links;
}

std::string links_text(const std::vector<LinkFigure>& links, const BenchPlace& place) {
  const auto ranks = static_cast<int>(place.sites.size());
  std::string text;
  if (ranks <= kMatrixRanks) {
    text += "\n# ranks:";
    for (int r = 0; r < ranks; ++r)
      text += " " + std::to_string(r) + "=" + place.sites[static_cast<std::size_t>(r)].host;
    text += "\n" + matrix("latency, us: half a round trip of 8 bytes", links, ranks,
                          [](const LinkFigure& link) { return cell(link.latency_s * 1e6); });
    text += matrix("bandwidth, GB/s: messages of 4 MB there and back", links, ranks,
                   [](const LinkFigure& link) { return cell(link.bytes_per_s / 1e9); });
    text += matrix("kind", links, ranks, [](const LinkFigure& link) { return word_cell(link.kind); });
  }
  text += summary(links) + "\n";
  for (const std::string& sentence : judge_links(links, place.sites)) text += sentence + "\n";
  return text;
}

nlohmann::ordered_json links_json(const std::vector<LinkFigure>& links, const BenchPlace& place) {
  nlohmann::ordered_json list = nlohmann::json::array();
  for (const LinkFigure& link : links) {
    list.push_back({{"a", link.a},
                    {"b", link.b},
                    {"host_a", place.sites[static_cast<std::size_t>(link.a)].host},
                    {"host_b", place.sites[static_cast<std::size_t>(link.b)].host},
                    {"kind", link.kind},
                    {"latency_us", link.latency_s * 1e6},
                    {"bandwidth_gbps", link.bytes_per_s / 1e9}});
  }
  return list;
}

}  // namespace drivetrain
