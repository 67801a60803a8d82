// `drivetrain comm bench`: reads the request, then runs it: as threads, as a rank of the job it was started in, or by
// starting that job itself.
#include <cstdlib>

#include "kernels/error.h"
#include "launcher/comm_bench_request.h"
#include "launcher/comm_bench_run.h"
#include "launcher/commands.h"
#include "launcher/job.h"
#include "launcher/rank_files.h"
#include "launcher/scratch_folder.h"
#include "runtime/comm/world.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

namespace po = boost::program_options;

constexpr int kMostThreads = 256;

const Usage kUsage{
    "comm bench [-n N] [options]",
    "Measures collectives over a sweep of sizes, checks every result, and prints time, algorithm and\n"
    "bus bandwidth as nccl-tests define them. Starts N ranks under mpirun itself; under your own mpirun\n"
    "or srun it is one rank. Sizes are bytes of the whole tensor, rounded to whole elements and shares.",
    "  drivetrain comm bench -n 2\n"
    "  drivetrain comm bench -n 4 --dtype bf16 -b 1M -e 256M -f 4 --against mpi\n"
    "  drivetrain comm bench -n 4 --op all --transport threads --json bench.json\n"
    "  drivetrain comm bench -n 4 --transport hierarchical --ranks-per-host 2\n"
    "  drivetrain comm bench --host node1:2,node2:2 --interface eth0 --links\n"
    "  mpirun -np 2 drivetrain comm bench --op broadcast -b 8 -e 1K -f 2 --back-to-back\n"};

po::typed_value<std::string>* word(const char* otherwise, const char* shape) {
  return po::value<std::string>()->default_value(otherwise)->value_name(shape);
}

OptionList bench_options() {
  OptionList options("options");
  options.add_options()("ranks,n", po::value<int>()->value_name("N"),
                        "number of ranks; absent: one per slot of the hosts, one per core of this machine")(
      "op", word("all_reduce", "OP,..."),
      "all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, sendrecv, barrier, or all")(
      "dtype", word("f32", "TYPE,..."), "f32, f64, bf16, f16, i32, i64, u8, or all")(
      "reduce", word("sum", "R"), "sum, max, min, average")("begin,b", word("8", "BYTES"), "smallest size; K, M, G")(
      "end,e", word("64M", "BYTES"), "largest size")("factor,f", po::value<double>()->value_name("F"),
                                                     "from size to size, multiply by F (absent: 4)")(
      "step,i", po::value<std::string>()->value_name("BYTES"), "... or add BYTES")(
      "place", word("both", "in|out|both"), "in place, out of place, where the operation has it")(
      "iters", po::value<int>()->value_name("N"), "timed calls; absent: 100 to 64 KB, 30 to 4 MB, 10 above")(
      "warmup", po::value<int>()->default_value(2)->value_name("N"), "calls before, not timed")(
      "back-to-back", "time many calls in a row and divide, as nccl-tests do (latency)")(
      "check", word("on", "on|off"), "compare every result exactly, outside of the timed part")(
      "memory", word("symmetric", "KIND"), "symmetric (peers reach it) or ordinary")(
      "transport", word("auto", "T"), "auto, shm, mpi, hierarchical, threads (in one process)")(
      "ranks-per-host", po::value<int>()->value_name("N"), "let blocks of N ranks stand for hosts")(
      "against", po::value<std::string>()->value_name("mpi"), "run MPI's counterparts in turn and print the ratio")(
      "mpi-settings", po::value<std::string>()->value_name("S"),
      "of the mpirun started: default, or tuned (no CMA, coll_han, allocator that keeps memory)")(
      "links", "measure the link between every two ranks instead, and name slow ones")(
      "json", word("", "FILE"), "write the figures there too; - for standard output instead of the table");
  add_host_options(options);
  return options;
}

template <class T>
T choose(const OptionValues& values, const std::string& option, const char* first, T one, const char* second, T two) {
  const std::string text = values[option].as<std::string>();
  if (text == first) return one;
  if (text == second) return two;
  throw Error(ErrorKind::kUsage, "--" + option + " " + text + ": wants " + first + " or " + second);
}

int number(const OptionValues& values, const std::string& option) {
  if (values.count(option) == 0) return 0;
  const int value = values[option].as<int>();
  if (value < 1) throw Error(ErrorKind::kUsage, "--" + option + " " + std::to_string(value) + ": wants at least 1");
  return value;
}

void check_links_alone(const OptionValues& values) {
  for (const char* option : {"op", "dtype", "reduce", "begin", "end", "factor", "step", "place", "iters", "warmup",
                             "back-to-back", "check", "memory", "against", "mpi-settings"})
    if (values.count(option) > 0 && !values[option].defaulted())
      throw Error(ErrorKind::kUsage, std::string("--links measures pairs of ranks and has no --") + option +
                                         "; run the sweep by itself");
}

BenchRequest request_of(const OptionValues& values) {
  const auto text = [&](const char* option) { return values[option].as<std::string>(); };
  BenchRequest request;
  request.ops = parse_ops(text("op"));
  request.dtypes = parse_dtypes(text("dtype"));
  request.reduce = parse_reduce(text("reduce"));
  request.placings = parse_placings(text("place"));
  request.sizes.begin = parse_size("--begin", text("begin"));
  request.sizes.end = parse_size("--end", text("end"));
  if (values.count("factor") > 0) request.sizes.factor = values["factor"].as<double>();
  if (values.count("step") > 0) {
    if (values.count("factor") > 0) throw Error(ErrorKind::kUsage, "--step and --factor exclude each other");
    request.sizes.step = parse_size("--step", text("step"));
    if (request.sizes.step == 0) throw Error(ErrorKind::kUsage, "--step 0: wants at least 1 byte");
  }
  request.iterations = number(values, "iters");
  request.warmup = values["warmup"].as<int>();
  if (values.count("back-to-back") > 0) request.timing = BenchRequest::Timing::kBackToBack;
  request.check = choose(values, "check", "on", BenchRequest::Check::kOn, "off", BenchRequest::Check::kOff);
  request.memory = choose(values, "memory", "symmetric", BenchMemory::kSymmetric, "ordinary", BenchMemory::kOrdinary);
  request.transport = parse_transport(text("transport"));
  request.ranks_per_host = number(values, "ranks-per-host");
  request.interface = text("interface");
  if (values.count("against") > 0) {
    if (text("against") != "mpi")
      throw Error(ErrorKind::kUsage, "--against " + text("against") + ": only mpi is known");
    request.against = BenchRequest::Against::kMpi;
  }
  if (values.count("mpi-settings") > 0)
    request.mpi_settings = choose(values, "mpi-settings", "default", "default", "tuned", "tuned");
  request.json = text("json");
  if (values.count("links") > 0) {
    request.measure = BenchRequest::Measure::kLinks;
    check_links_alone(values);
  }
  check_request(request);
  return request;
}

// For Open MPI 4.1 within a host: no copies through the kernel, the hierarchical collectives, and an allocator that does
// not give large blocks back between calls.
std::vector<std::string> tuned_environment() {
  return {"OMPI_MCA_btl_vader_single_copy_mechanism=none", "OMPI_MCA_coll_han_priority=100",
          "MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=4294967296", "MALLOC_TOP_PAD_=67108864"};
}

MpiFacts mpi_facts(const BenchRequest& request) {
  MpiFacts facts;
  const bool ours = std::getenv(kJobVariable) != nullptr;
  facts.settings = ours ? request.mpi_settings : "by hand";
  for (const auto& [name, value] : own_environment()) {
    for (const char* family : {"OMPI_MCA_btl", "OMPI_MCA_pml", "OMPI_MCA_coll", "OMPI_MCA_mpi_", "MALLOC_"})
      if (name.starts_with(family)) facts.parameters[name] = value;
  }
  return facts;
}

int start_job(Arguments arguments, const OptionValues& values, const BenchRequest& request, const MachineFacts& facts,
              LaunchRequest launch) {
  launch.program = {facts.program, "comm", "bench"};
  launch.program.insert(launch.program.end(), arguments.begin(), arguments.end());
  if (request.mpi_settings == "tuned") {
    const std::vector<std::string> tuned = tuned_environment();
    launch.environment_options.insert(launch.environment_options.begin(), tuned.begin(), tuned.end());
  }
  ScratchFolder scratch("drivetrain-bench");
  const Attempt attempt(scratch.path());
  launch.rank_folder = attempt.rank_folder();
  const LaunchPlan plan = plan_launch(launch, facts);
  for (const std::string& remark : plan.remarks) log_info(remark);
  wait_for_hosts(launch, values);
  const int code = run_job(plan, attempt, {.grace = std::chrono::seconds(1)});
  if (code != 0) scratch.keep();
  return code;
}

void check_ranks(const BenchRequest& request, int ranks) {
  if (ranks < 2)
    throw Error(ErrorKind::kUsage, "-n " + std::to_string(ranks) + ": a collective needs at least 2 ranks");
  if (request.transport == BenchTransport::kThreads && ranks > kMostThreads)
    throw Error(ErrorKind::kUsage, "-n " + std::to_string(ranks) + ": the threads transport runs at most " +
                                       std::to_string(kMostThreads) + " ranks in one process");
  if (request.ranks_per_host > 0 && ranks % request.ranks_per_host != 0)
    throw Error(ErrorKind::kUsage, "--ranks-per-host " + std::to_string(request.ranks_per_host) +
                                       " does not divide " + std::to_string(ranks) + " ranks");
}

int run_as_rank(const OptionValues& values, const BenchRequest& request, const ProcessPlace& place) {
  const auto refuse = [](const std::string& message) { throw Error(ErrorKind::kUsage, message); };
  const bool ours = std::getenv(kJobVariable) != nullptr;
  if (values.count("ranks") > 0 && values["ranks"].as<int>() != place.world_size)
    refuse("-n " + std::to_string(values["ranks"].as<int>()) + ", but the launcher started " +
           std::to_string(place.world_size) + " ranks; leave -n out under mpirun and srun");
  if (request.transport == BenchTransport::kThreads)
    refuse("--transport threads: its ranks are threads of one process; run it without mpirun");
  if (!ours && values.count("mpi-settings") > 0)
    refuse("--mpi-settings is for the mpirun that comm bench starts; give yours the parameters with --mca");
  return run_bench_process(request, mpi_facts(request));
}

}  // namespace

int cmd_comm_bench(Arguments arguments) {
  const auto values = parse_options(arguments, kUsage, bench_options(), {});
  if (!values) return 0;
  const BenchRequest request = request_of(*values);
  const ProcessPlace place = process_place();
  if (place.world_size > 1) return run_as_rank(*values, request, place);
  const bool started_alone = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
  if (started_alone && request.transport != BenchTransport::kThreads)
    throw Error(ErrorKind::kUsage, "mpirun or srun started 1 rank: a collective needs at least 2 ranks");

  const MachineFacts facts = gather_machine_facts((*values)["mpirun"].as<std::string>());
  LaunchRequest launch = host_request(*values, facts);
  const bool threads = request.transport == BenchTransport::kThreads;
  const bool told_hosts =
      !(*values)["host"].as<std::string>().empty() || !(*values)["hostfile"].as<std::string>().empty();
  if (threads && (told_hosts || values->count("mpi-settings") > 0))
    throw Error(ErrorKind::kUsage,
                "--transport threads: one process on this machine, without MPI; leave the hosts and "
                "--mpi-settings out");
  if (launch.ranks == 0) launch.ranks = std::max(total_slots(launch.hosts), 0);
  if (launch.ranks == 0) launch.ranks = facts.cores;
  check_ranks(request, launch.ranks);
  const bool one_host = launch.hosts.hosts.size() == 1;
  if (one_host && request.transport == BenchTransport::kHierarchical && request.ranks_per_host == 0)
    throw Error(ErrorKind::kUsage,
                "--transport hierarchical: all ranks share one host; --ranks-per-host makes blocks of "
                "ranks stand for hosts");
  const std::vector<BenchCase> cases = cases_of(request, launch.ranks);  // refuses before anything starts
  if (one_host) check_room(request, cases, launch.ranks, launch.ranks);
  if (threads) return run_bench_threads(request, launch.ranks);
  return start_job(arguments, *values, request, facts, std::move(launch));
}

}  // namespace drivetrain
