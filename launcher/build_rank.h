// Wires every long-lived object of one rank, once: device, mesh, model, tokenizer, arena. Loads weights where it is told.
#pragma once
#include <filesystem>
#include <memory>

#include "kernels/arena.h"
#include "launcher/memory_plan.h"
#include "launcher/run_setup.h"
#include "runtime/comm/world.h"
#include "runtime/data/tokenizer.h"
#include "runtime/ledger/step_ledger.h"
#include "runtime/mesh.h"

namespace drivetrain {

struct RankObjects {
  RunSetup setup;
  MemoryPlan plan;  // of training; zero for inference
  int threads = 1;
  std::unique_ptr<StepLedger> ledger;  // of training; device and mesh charge to it
  std::unique_ptr<Device> device;
  std::unique_ptr<Mesh> mesh;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Transformer> model;  // memory allocated, weights undefined
  std::unique_ptr<Arena> arena;        // exactly the planned bytes
};

CommOptions comm_options(const Config& config);
// Of collectives while files are written or read.
Deadline checkpoint_deadline(const Config& config);
// Threads of this rank: its own cores when it is bound to some, else its share of the host's.
int threads_of_rank(const ProcessPlace& place);
// For token files without a tokenizer named: one that refuses text.
std::unique_ptr<Tokenizer> open_tokenizer(const Config& config);

// Collective over the world. Throws kMemory with the plan when the ranks of this host do not fit.
RankObjects build_rank(const Config& config, std::unique_ptr<Communicator> world, TransformerOptions::Use use);

// Random weights, or those of model.path, as the configuration says.
void initialise_weights(RankObjects& rank, const Config& config);
// From a run folder, a checkpoint or a Hugging Face folder.
void load_weights(RankObjects& rank, const std::filesystem::path& from);
// A Hugging Face folder named with --from brings its own shape and tokenizer: it replaces the model of the configuration.
void adopt_model_folder(Config& config, const std::string& from);
// What eval and generate take: `from` if given, else the newest checkpoint of the run, else model.path. Throws kData
// when there is nothing.
std::filesystem::path weights_for_inference(const Config& config, const std::string& from);

}  // namespace drivetrain
