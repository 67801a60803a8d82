// dump_logits: prints a model's logits for given ids as JSON, for tools/reference/compare_hf.py --against. Takes the
// configuration of a run, alone or under mpirun. Compares nothing itself.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/build_rank.h"
#include "launcher/failure.h"
#include "launcher/options.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

std::string logits_json(RankObjects& rank, const std::vector<std::int32_t>& ids) {
  const std::vector<float> logits = rank.model->logits(ids, nullptr, Model::Rows::kAll, *rank.arena);
  const auto vocab = rank.model->vocab_size();
  nlohmann::json rows = nlohmann::json::array();
  for (auto row = logits.begin(); row != logits.end(); row += vocab)
    rows.push_back(std::vector<float>(row, row + vocab));
  return nlohmann::json{{"ids", ids}, {"logits", rows}}.dump();
}

int dump_logits(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("ids", po::value<std::vector<std::int32_t>>()->multitoken()->required()->value_name("ID..."),
                        "token ids of one sequence")(
      "from", po::value<std::string>()->default_value("")->value_name("FOLDER"), "as for drivetrain eval");
  add_config_options(options);
  const Usage usage{"dump_logits CONFIG --ids ID... [options]", "Prints {\"ids\": [...], \"logits\": [[...], ...]}.",
                    "  dump_logits configs/smollm2-135m.yaml --set precision.compute=fp32 --ids 504 3575 282\n"};
  const auto values = parse_options(arguments, usage, options, {"config"});
  if (!values) return 0;
  const ConfigArguments source = config_arguments(*values);
  const Config config = load_config(source.file, source.overrides);

  const auto world = open_world(comm_options(config));
  init_logging({.world_rank = world->rank(), .world_size = world->size(), .host = short_host_name()});
  return run_rank(*world, RankPhase{"dump logits"}, [&] {
    RankObjects rank = build_rank(config, world->split(0, world->rank()), TransformerOptions::Use::kInference);
    load_weights(rank, weights_for_inference(config, (*values)["from"].as<std::string>()));
    const std::string text = logits_json(rank, (*values)["ids"].as<std::vector<std::int32_t>>());
    if (world->rank() == 0) std::puts(text.c_str());
    return 0;
  });
}

}  // namespace
}  // namespace drivetrain

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    drivetrain::init_logging({});
    return drivetrain::dump_logits(arguments);
  } catch (...) {
    return drivetrain::report_current_exception("start");
  }
}
