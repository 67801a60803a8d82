// drivetrain eval: loss and perplexity on held-out data.
#include <cmath>
#include <cstdio>

#include "launcher/build_rank.h"
#include "launcher/commands.h"
#include "launcher/failure.h"
#include "launcher/options.h"
#include "runtime/data/dataset.h"
#include "runtime/evaluator.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

int evaluate(const Config& config, const std::vector<std::string>& files, const std::string& from,
             RankObjects& rank) {
  const Config::Data& d = config.data;
  const auto data = open_dataset({files, d.format, d.token_dtype, d.on_error, d.cache_dir, rank.setup.seq_len,
                                  d.packing, rank.setup.model.vocab},
                                 *rank.tokenizer);
  const auto weights = weights_for_inference(config, from);
  load_weights(rank, weights);
  Evaluator evaluator(*rank.device, *rank.mesh, *data, {rank.setup.micro_batch, config.eval.batches});
  const EvalResult result = evaluator.run(*rank.model, *rank.arena);
  if (result.targets > 0 && !std::isfinite(result.loss()))
    throw Error(ErrorKind::kNumeric, weights.string() + ": the loss on this data is not finite");
  if (rank.mesh->world().rank() == 0)
    std::printf("weights %s\ndata %s\nloss %.6f perplexity %.4f over %lld targets\n", weights.c_str(),
                data->report().c_str(), result.loss(), result.perplexity(), static_cast<long long>(result.targets));
  return 0;
}

}  // namespace

int cmd_eval(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("from", po::value<std::string>()->default_value("")->value_name("FOLDER"),
                        "run folder, checkpoint or Hugging Face folder (default: the run's newest checkpoint, else "
                        "model.path)")("file", po::value<std::vector<std::string>>()->composing()->value_name("FILE"),
                                       "data to evaluate on instead of data.eval; repeatable");
  add_config_options(options);
  const Usage usage{"eval CONFIG [options]",
                    "Prints loss and perplexity of a model on data.eval or on the files named.",
                    "  drivetrain eval configs/quickstart.yaml\n"
                    "  drivetrain eval configs/smollm2-135m.yaml --from models/SmolLM2-135M --file held-out.jsonl\n"
                    "  mpirun -np 2 drivetrain eval configs/quickstart.yaml --set parallel.tp=2\n"};
  const auto values = parse_options(arguments, usage, options, {"config"});
  if (!values) return 0;
  const ConfigArguments source = config_arguments(*values);
  Config config = load_config(source.file, source.overrides);
  adopt_model_folder(config, (*values)["from"].as<std::string>());
  const std::vector<std::string> files =
      values->count("file") ? (*values)["file"].as<std::vector<std::string>>() : config.data.eval;
  if (files.empty()) throw Error(ErrorKind::kUsage, "nothing to evaluate on: set data.eval or give --file");

  const auto world = open_world(comm_options(config));
  init_logging({.world_rank = world->rank(), .world_size = world->size(), .host = short_host_name()});
  RankPhase phase{"evaluate"};
  return run_rank(*world, phase, [&] {
    RankObjects rank = build_rank(config, world->split(0, world->rank()), TransformerOptions::Use::kInference);
    return evaluate(config, files, (*values)["from"].as<std::string>(), rank);
  });
}

}  // namespace drivetrain
