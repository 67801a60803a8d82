#include "launcher/build_rank.h"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>

#include "kernels/cpu/cpu_device.h"
#include "launcher/checkpoint_model.h"
#include "launcher/failure.h"
#include "launcher/plan_text.h"
#include "launcher/rank_files.h"
#include "models/hf_names.h"
#include "models/hf_weights.h"
#include "models/init.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/ledger/ledger_device.h"

namespace drivetrain {
namespace {

void check_memory(const RankObjects& rank, const Config& config, int ranks_per_host) {
  const HostMemory memory = host_memory(config.memory.limit_gb);
  if (fits(rank.plan, memory, ranks_per_host)) return;
  throw Error(ErrorKind::kMemory,
              "the run does not fit into memory:\n" + plan_text(rank.setup, rank.plan, memory, ranks_per_host));
}

bool is_hf_folder(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / "config.json") &&
         (std::filesystem::exists(folder / "model.safetensors") ||
          std::filesystem::exists(folder / "model.safetensors.index.json"));
}

}  // namespace

CommOptions comm_options(const Config& config) {
  CommOptions options;
  const std::string& word = config.comm.transport;
  options.transport = word == "shm"    ? Transport::kShm
                      : word == "mpi"  ? Transport::kMpi
                      : word == "host" ? Transport::kHost
                                       : Transport::kAuto;
  options.timeout = std::chrono::seconds(config.comm.timeout_s);
  options.check = config.comm.check;
  options.init_timeout = std::chrono::seconds(config.comm.init_timeout_s);
  options.last_words = [](const Error& error) {
    try {
      throw error;
    } catch (...) {
      report_current_exception("join the job");
    }
  };
  const char* ranks = std::getenv(kRankFolderVariable);  // attempt-K/ranks
  const bool launched = ranks != nullptr && *ranks != '\0';
  options.recorder_folder = launched ? std::filesystem::path(ranks).parent_path() : config.run_folder();
  const std::string& progress = config.comm.progress;
  options.progress = progress == "on"    ? ProgressThread::kOn
                     : progress == "off" ? ProgressThread::kOff
                                         : ProgressThread::kAuto;
  options.compute_threads = threads_of_rank(process_place());
  return options;
}

Deadline checkpoint_deadline(const Config& config) {
  return {std::chrono::seconds(config.comm.checkpoint_timeout_s), "comm.checkpoint_timeout_s"};
}

int threads_of_rank(const ProcessPlace& place) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return 1;
  const int mine = CPU_COUNT(&mask);
  const bool bound = mine < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return bound ? mine : std::max(1, mine / std::max(1, place.local_size));
}

std::unique_ptr<Tokenizer> open_tokenizer(const Config& config) {
  const std::string& word = config.data.tokenizer;
  if (word == "bytes") return make_byte_tokenizer();
  if (word != "auto") return load_tokenizer(word);
  if (config.model.path.empty()) return config.data.format == "tokens" ? make_ids_tokenizer() : make_byte_tokenizer();
  if (std::filesystem::exists(std::filesystem::path(config.model.path) / "tokenizer.json"))
    return load_tokenizer(config.model.path);
  if (config.data.format == "tokens") return make_ids_tokenizer();
  throw Error(
      ErrorKind::kData,
      config.model.path + " has no tokenizer.json; name one with data.tokenizer, or set data.tokenizer: bytes");
}

RankObjects build_rank(const Config& config, std::unique_ptr<Communicator> world, TransformerOptions::Use use) {
  const ProcessPlace place = process_place();
  RankObjects rank;
  rank.setup = set_up_run(config, world->size());
  rank.setup.transformer.use = use;
  rank.threads = threads_of_rank(place);
  rank.device = make_cpu_device(rank.threads);
  rank.mesh = std::make_unique<Mesh>(std::move(world), rank.setup.mesh);
  if (use == TransformerOptions::Use::kTraining) {
    rank.ledger = std::make_unique<StepLedger>();
    rank.device = std::make_unique<LedgerDevice>(std::move(rank.device), *rank.ledger);
    rank.mesh->observe(*rank.ledger);
  }
  rank.tokenizer = open_tokenizer(config);
  std::size_t arena_bytes = 0;
  if (use == TransformerOptions::Use::kTraining) {
    rank.plan = plan_memory(rank.setup, rank.device->ops());
    check_memory(rank, config, place.local_size);
    arena_bytes = rank.plan.activation_bytes;
  } else {
    arena_bytes = plan_inference_arena(rank.setup, rank.device->ops());
  }
  rank.model = std::make_unique<Transformer>(*rank.device, *rank.mesh, rank.setup.transformer);
  rank.model->store().materialize(*rank.device, *rank.mesh, rank.setup.store);
  rank.arena = std::make_unique<Arena>(rank.mesh->world().symmetric_buffer(*rank.device, arena_bytes));
  return rank;
}

void initialise_weights(RankObjects& rank, const Config& config) {
  if (config.model.path.empty() || config.model.init == "random")
    init_parameters(rank.model->store(), *rank.mesh, config.run.seed);
  else
    load_model_weights(rank.model->store(), *rank.mesh, rank.setup.model, config.model.path);
  rank.device->ops().weights_changed();
}

void load_weights(RankObjects& rank, const std::filesystem::path& from) {
  if (is_hf_folder(from)) {
    load_model_weights(rank.model->store(), *rank.mesh, rank.setup.model, from);
  } else {
    const auto checkpoint = find_checkpoint(from);
    check_checkpoint_model(checkpoint, rank.setup.model);
    const auto source = open_checkpoint_weights(checkpoint);
    check_tensors(rank.model->store(), *source, is_ignorable_tensor);
    load_values(rank.model->store(), *rank.mesh, *source);
  }
  rank.device->ops().weights_changed();
}

void adopt_model_folder(Config& config, const std::string& from) {
  if (from.empty() || !is_hf_folder(from)) return;
  config.model = Config::Model{};
  config.model.path = from;
}

std::filesystem::path weights_for_inference(const Config& config, const std::string& from) {
  if (!from.empty()) return from;
  if (const auto newest = CheckpointFolder(config.run_folder() / "checkpoints").newest()) return *newest;
  if (!config.model.path.empty()) return config.model.path;
  throw Error(ErrorKind::kData, "there are no weights: " + (config.run_folder() / "checkpoints").string() +
                                    " has no complete checkpoint and model.path is not set; train first, or name a "
                                    "folder with --from");
}

}  // namespace drivetrain
