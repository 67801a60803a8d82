#include "launcher/bench/bench_rank.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "kernels/error.h"
#include "kernels/ops.h"
#include "launcher/bench/bench_json.h"
#include "launcher/bench/bench_text.h"
#include "launcher/scratch_folder.h"
#include "launcher/training.h"
#include "runtime/data/synthetic_dataset.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

// Hosts need not share a disk: rank 0 gets the ledger files of the ranks that it does not see. Collective.
void bring_ledgers_home(Communicator& world, Device& device, const fs::path& ledger_folder) {
  std::ifstream in(ledger_path(ledger_folder, world.rank()), std::ios::binary);
  const std::vector<char> own{std::istreambuf_iterator<char>(in), {}};
  const Buffer mine(device, own.size()), all(device, own.size() * static_cast<std::size_t>(world.size()));
  const auto bytes = static_cast<std::int64_t>(own.size());
  const Tensor part = mine.tensor(DType::kU8).flat(0, bytes);
  const Tensor whole = all.tensor(DType::kU8).flat(0, bytes * world.size());
  device.upload(part, std::as_bytes(std::span(own)));
  world.all_gather(whole, part).wait();
  if (world.rank() != 0) return;
  std::vector<char> files(whole.bytes());
  device.download(std::as_writable_bytes(std::span(files)), whole);
  for (int r = 1; r < world.size(); ++r) {
    const fs::path file = ledger_path(ledger_folder, r);
    if (fs::exists(file)) continue;
    std::ofstream out(file, std::ios::binary);
    out.write(files.data() + bytes * r, bytes);
    out.close();
    if (!out) throw Error(ErrorKind::kIo, file.string() + ": cannot be written");
  }
}

double all_reduced(Communicator& world, Device& device, double value, ReduceOp op) {
  const Buffer buffer(device, sizeof value);
  const Tensor x = buffer.tensor(DType::kF64).flat(0, 1);
  device.upload(x, std::as_bytes(std::span(&value, 1)));
  world.all_reduce(x, op).wait();
  device.download(std::as_writable_bytes(std::span(&value, 1)), x);
  return value;
}

// Bytes read and written a second by a large copy, all ranks at once; the mean of the ranks' best. Collective.
double copy_bandwidth(Communicator& world, Device& device) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;  // beyond the caches
  constexpr int kTries = 4;                              // the first one touches the pages
  const Buffer from(device, kBytes), to(device, kBytes);
  device.ops().zero(from.tensor(DType::kF32));
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    world.barrier();
    const auto begin = std::chrono::steady_clock::now();
    device.ops().copy(to.tensor(DType::kF32), from.tensor(DType::kF32));
    device.synchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (i > 0) best = std::max(best, 2.0 * kBytes / std::max(seconds, 1e-9));
  }
  return all_reduced(world, device, best, ReduceOp::kSum) / world.size();
}

std::shared_ptr<const Dataset> bench_data(const StepBenchOptions& options, const Config& config,
                                          const RankObjects& rank) {
  if (options.real_data) return open_data(config, rank, config.data.train);
  return make_synthetic_dataset(
      {.seq_len = rank.setup.seq_len, .vocab = rank.setup.model.vocab, .seed = config.run.seed});
}

RunFacts facts_of(const Config& config, const RankObjects& rank) {
  RunFacts facts;
  if (config.data.workers >= 0) facts.data_workers = config.data.workers;
  facts.threads_per_rank = rank.threads;
  facts.zero = config.parallel.zero;
  facts.compute = config.precision.compute;
  facts.reduce = config.precision.reduce;
  return facts;
}

// Trains, measures what else is needed, and gathers it. What it returns is complete on rank 0. Collective.
StepBench measure(const StepBenchOptions& options, const Config& config, const std::string& resolved,
                  RankObjects& rank, const StopSignals& signals, RankPhase& phase) {
  Communicator& world = rank.mesh->world();
  StepBench bench;
  bench.load_before = load_average();
  phase.name = "read data";
  const auto data = bench_data(options, config, rank);
  Peak peak = device_peak(config, rank);
  if (options.peak_tflops) peak.source = "--peak-tflops";
  train({config, resolved, signals, data, peak}, rank, phase);
  bench.load_after = load_average();

  phase.name = "gather the ledgers";
  const fs::path ledger_folder = config.run_folder() / "ledger";
  bring_ledgers_home(world, *rank.device, ledger_folder);
  phase.name = "measure memory bandwidth";
  bench.copy_bytes_per_s = copy_bandwidth(world, *rank.device);
  if (options.feed) {
    phase.name = "feed test";
    const auto loader = open_loader(config, rank, data);
    // Behind what training has read, so that caches do not hold it.
    loader->seek({0, (options.warmup + options.steps) * rank.setup.global_batch % data->size()});
    const double windows =
        measure_feed(*loader, *rank.device,
                     {.micro = rank.setup.micro_batch,
                      .seq = rank.setup.seq_len,
                      .warmup = std::max<std::int64_t>(options.warmup, 2 + std::max(0, config.data.workers)),
                      .steps = options.steps});
    bench.feed_windows = all_reduced(world, *rank.device, windows, ReduceOp::kMin);
  }
  if (world.rank() != 0) return bench;

  bench.config = options.config.file.string();
  bench.model = rank.model->description();
  bench.data = data->report();
  bench.transport = world.transport();
  bench.warmup = options.warmup;
  bench.shape = flops_shape(rank.setup.model, rank.setup.seq_len, rank.model->parameter_count());
  bench.recompute = rank.setup.transformer.recompute;
  bench.convention = options.convention;
  bench.facts = facts_of(config, rank);
  bench.ledgers = read_run_ledger(config.run_folder(), options.steps);
  bench.peak_source = peak.source;
  return bench;
}

void publish(const StepBenchOptions& options, const StepBench& bench) {
  const StepBenchReport report = report_of(bench);
  const nlohmann::ordered_json json = bench_json(bench, report);
  if (const char* figures = std::getenv(kFiguresVariable)) {
    write_bench_json({{"report", json}, {"text", bench_text(bench, report)}}, figures);
    return;
  }
  if (!options.json.empty()) write_bench_json(json, options.json);
  if (options.json == "-") return;
  std::fputs(bench_text(bench, report).c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

int run_step_bench(const StepBenchOptions& options) {
  const StopSignals signals;
  const auto world = open_world(comm_options(load_config(options.config.file, options.config.overrides)));
  init_logging({.world_rank = world->rank(), .world_size = world->size(), .host = short_host_name(), .quiet = true});
  RankPhase phase;
  return run_rank(*world, phase, [&] {
    phase.name = "make the run folder";
    std::optional<ScratchFolder> scratch;  // of each rank's own, and gone when it ends
    if (options.out.empty()) scratch.emplace("drivetrain-bench");
    const fs::path folder = scratch ? scratch->path() : fs::absolute(options.out);
    if (world->rank() == 0 && fs::exists(folder / "bench"))
      throw Error(ErrorKind::kUsage, "--out " + options.out.string() + ": has a folder bench already; name another");
    world->barrier();
    const std::vector<ConfigOverride> overrides = bench_overrides(options, folder);
    const Config config = load_config(options.config.file, overrides);
    phase.name = "build the model";
    RankObjects rank = build_rank(config, world->split(0, world->rank()), TransformerOptions::Use::kTraining);
    const StepBench bench =
        measure(options, config, resolved_yaml(options.config.file, overrides), rank, signals, phase);
    phase.name = "report";
    if (world->rank() == 0) publish(options, bench);
    return 0;
  });
}

}  // namespace drivetrain
