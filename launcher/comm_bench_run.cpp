#include "launcher/comm_bench_run.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>

#include "kernels/cpu/cpu_device.h"
#include "kernels/error.h"
#include "launcher/comm_bench.h"
#include "launcher/comm_links.h"
#include "launcher/failure.h"
#include "runtime/comm/mpi_session.h"
#include "runtime/comm/thread_comm.h"
#include "runtime/comm/world.h"
#include "runtime/comm/world_of_session.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::kUsage, message);
}

// Where rank 0 writes: a table on standard output and, when asked for, JSON at the end. A file is replaced when the new
// one is whole; a bench that fails leaves what was there.
class Output {
 public:
  Output(const BenchRequest& request, bool speaks) : request_(request), speaks_(speaks) {
    if (!speaks || request.json.empty() || request.json == "-") return;
    namespace fs = std::filesystem;
    const bool replaceable = !fs::exists(request.json) || fs::is_regular_file(request.json);  // not a pipe or device
    draft_ = replaceable ? request.json + ".part" : request.json;
    file_.open(draft_);
    if (!file_) throw Error(ErrorKind::kIo, "--json " + request.json + ": cannot write there");
  }
  ~Output() {
    std::error_code ignored;
    if (!draft_.empty() && draft_ != request_.json) std::filesystem::remove(draft_, ignored);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void text(const std::string& lines) const {
    if (!speaks_ || request_.json == "-") return;
    std::fputs(lines.c_str(), stdout);
    std::fflush(stdout);
  }
  void json(const nlohmann::ordered_json& all) {
    if (!speaks_ || request_.json.empty()) return;
    const std::string text = all.dump(1) + "\n";
    if (request_.json == "-") {
      std::fputs(text.c_str(), stdout);
      return;
    }
    file_ << text;
    file_.close();
    std::error_code failed;
    if (file_ && draft_ != request_.json) std::filesystem::rename(draft_, request_.json, failed);
    if (!file_ || failed) throw Error(ErrorKind::kIo, "--json " + request_.json + ": the file could not be written");
  }

 private:
  const BenchRequest& request_;
  bool speaks_;
  std::string draft_;
  std::ofstream file_;
};

bool same_block(const BenchCase& a, const BenchCase& b) {
  return a.op == b.op && a.dtype == b.dtype && a.placing == b.placing;
}

bool memory_bounds(const std::string& transport, BenchMemory memory) {
  return transport == "threads" || (transport == "shm" && memory == BenchMemory::kSymmetric);
}

int sweep(Communicator& world, const BenchRequest& request, const BenchFacts& facts, MpiBaseline* mpi,
          int ranks_on_host) {
  Output output(request, world.rank() == 0);
  const std::vector<BenchCase> cases = cases_of(request, world.size());
  const std::size_t room = memory_of(cases, world.size());
  check_room(request, cases, world.size(), ranks_on_host);
  world.barrier();  // everybody has looked before anybody takes
  const auto device = make_cpu_device(1);
  const Buffer buffer =
      request.memory == BenchMemory::kSymmetric ? world.symmetric_buffer(*device, room) : Buffer(*device, room);
  const auto floor =
      memory_bounds(facts.place.transport, request.memory) ? CommBench::Floor::kMeasured : CommBench::Floor::kNone;
  CommBench bench(world, request, {buffer.data(), buffer.bytes()}, mpi, floor);
  output.text(header_text(request, facts));
  nlohmann::ordered_json all = {{"meta", meta_json(request, facts)}, {"rows", nlohmann::json::array()}};
  std::int64_t wrong = 0, mpi_wrong = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const BenchRow row = bench.measure(cases[i]);
    if (i == 0 || !same_block(cases[i], cases[i - 1])) output.text(block_text(request, row));
    output.text(row_text(request, row));
    all["rows"].push_back(row_json(row));
    wrong += row.wrong;
    mpi_wrong += row.mpi_wrong;
  }
  output.json(all);
  if (world.rank() == 0 && mpi_wrong > 0)
    log_warn(std::to_string(mpi_wrong) + " elements of MPI's results are wrong");
  if (wrong == 0) return 0;
  if (world.rank() == 0)
    log_error(std::to_string(wrong) + " elements of the results are wrong; see the column 'wrong'");
  return exit_code(ErrorKind::kComm);
}

int links(Communicator& world, const BenchRequest& request, const BenchFacts& facts) {
  Output output(request, world.rank() == 0);
  output.text(place_text(request, facts));
  const std::vector<LinkFigure> figures = measure_links(world, facts.place);
  output.text(links_text(figures, facts.place));
  output.json({{"meta", meta_json(request, facts)},
               {"links", links_json(figures, facts.place)},
               {"findings", judge_links(figures, facts.place.sites)}});
  return 0;
}

int measure(Communicator& world, const BenchRequest& request, const BenchFacts& facts, MpiBaseline* mpi,
            int ranks_on_host) {
  return request.measure == BenchRequest::Measure::kLinks ? links(world, request, facts)
                                                          : sweep(world, request, facts, mpi, ranks_on_host);
}

Transport transport_of(BenchTransport transport) {
  switch (transport) {
    case BenchTransport::kShm:
      return Transport::kShm;
    case BenchTransport::kMpi:
      return Transport::kMpi;
    case BenchTransport::kHierarchical:
      return Transport::kHost;
    default:
      return Transport::kAuto;
  }
}

void check_world(const BenchRequest& request, const BenchPlace& place) {
  if (request.transport != BenchTransport::kHierarchical || place.transport == "hierarchical") return;
  refuse(std::string("--transport hierarchical: ") +
         (place.hosts == 1 ? "all ranks share one host; --ranks-per-host makes blocks of ranks stand for hosts"
                           : "it needs hosts with equally many ranks each, in blocks; use --transport mpi"));
}

}  // namespace

int run_bench_process(const BenchRequest& request, const MpiFacts& mpi_facts) {
  const auto session = std::make_shared<MpiSession>(request.ranks_per_host);
  if (request.ranks_per_host > 0 && session->size() % request.ranks_per_host != 0)
    refuse("--ranks-per-host " + std::to_string(request.ranks_per_host) + " does not divide " +
           std::to_string(session->size()) + " ranks");
  CommOptions options;
  options.transport = transport_of(request.transport);
  options.progress = ProgressThread::kOff;  // nothing computes beside the collectives
  const std::unique_ptr<Communicator> world = open_world_of(session, options);
  RankPhase phase{"comm bench"};
  return run_rank(*world, phase, [&] {
    BenchFacts facts;
    facts.place = gather_place(*world, session->host_ranks(), request);
    check_world(request, facts.place);
    std::optional<MpiBaseline> mpi;
    if (request.against == BenchRequest::Against::kMpi) {
      mpi.emplace();
      facts.mpi = mpi_facts;
      facts.mpi.library = MpiBaseline::library();
    }
    const int ranks_on_host = static_cast<int>(session->host_ranks().size());
    return measure(*world, request, facts, mpi ? &*mpi : nullptr, ranks_on_host);
  });
}

int run_bench_threads(const BenchRequest& request, int ranks) {
  std::atomic<int> code{0};
  std::vector<int> everybody(static_cast<std::size_t>(ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  run_thread_ranks(ranks, [&](Communicator& world) {
    BenchFacts facts;
    facts.place = gather_place(world, everybody, request);
    const int mine = measure(world, request, facts, nullptr, ranks);
    if (mine != 0) code = mine;
  });
  return code;
}

}  // namespace drivetrain
