// drivetrain generate: text from a prompt, with time to first token and tokens per second.
#include <cstdio>
#include <string>

#include "launcher/build_rank.h"
#include "launcher/commands.h"
#include "launcher/failure.h"
#include "launcher/options.h"
#include "launcher/text_generation.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

struct Request {
  std::string prompt, from;
  std::int64_t tokens;
  SamplingOptions sampling;
};

Request read_request(const OptionValues& values, const Config& config) {
  Request r{values["prompt"].as<std::string>(),
            values["from"].as<std::string>(),
            values["tokens"].as<std::int64_t>(),
            {values["temperature"].as<double>(), values["top-k"].as<std::int64_t>(), values["top-p"].as<double>(),
             values.count("seed") ? values["seed"].as<std::uint64_t>() : config.run.seed}};
  if (r.tokens < 1)
    throw Error(ErrorKind::kUsage, "--tokens = " + std::to_string(r.tokens) + ": at least 1 is needed");
  if (!(r.sampling.temperature >= 0 && r.sampling.temperature < 1e6))
    throw Error(ErrorKind::kUsage, "--temperature must be 0 (greedy) or positive");
  if (r.sampling.top_k < 0) throw Error(ErrorKind::kUsage, "--top-k must be 0 (all tokens) or positive");
  if (!(r.sampling.top_p > 0 && r.sampling.top_p <= 1)) throw Error(ErrorKind::kUsage, "--top-p must lie in (0, 1]");
  return r;
}

int generate(const Config& config, const Request& request, RankObjects& rank) {
  load_weights(rank, weights_for_inference(config, request.from));
  const bool first = rank.mesh->world().rank() == 0;
  const auto prompt = rank.tokenizer->encode(request.prompt);
  if (first) std::fputs(request.prompt.c_str(), stdout);
  const Generation out = generate_tokens(*rank.model, *rank.arena, prompt, request.tokens, request.sampling,
                                         rank.tokenizer->end_of_text(), [&](std::int32_t id) {
                                           if (!first) return;
                                           const std::string text = rank.tokenizer->decode({id});
                                           std::fwrite(text.data(), 1, text.size(), stdout);
                                           std::fflush(stdout);
                                         });
  if (first) {
    std::fputs("\n", stdout);
    std::fflush(stdout);
    std::fprintf(stderr, "%zu prompt tokens, %zu new, time to first token %.1f ms, then %.1f tokens/s\n",
                 prompt.size(), out.ids.size(), out.first_token_ms, out.tokens_per_s);
    if (static_cast<std::int64_t>(prompt.size() + out.ids.size()) >= rank.model->max_positions())
      std::fprintf(stderr, "stopped at %lld positions, data.seq_len of the configuration\n",
                   static_cast<long long>(rank.model->max_positions()));
  }
  return 0;
}

}  // namespace

int cmd_generate(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("prompt,p", po::value<std::string>()->required()->value_name("TEXT"), "text to continue")(
      "from", po::value<std::string>()->default_value("")->value_name("FOLDER"),
      "run folder, checkpoint or Hugging Face folder (default: the run's newest checkpoint, else model.path)")(
      "tokens,t", po::value<std::int64_t>()->default_value(64)->value_name("N"), "at most so many new tokens")(
      "temperature", po::value<double>()->default_value(0), "0: greedy")(
      "top-k", po::value<std::int64_t>()->default_value(0), "draw from the K likeliest tokens; 0: from all")(
      "top-p", po::value<double>()->default_value(1), "draw from the smallest set with this much probability")(
      "seed", po::value<std::uint64_t>()->value_name("N"), "of the draws (default: run.seed)");
  add_config_options(options);
  const Usage usage{"generate CONFIG --prompt TEXT [options]",
                    "Continues a text. Prints it to stdout, and tokens/s and time to first token to stderr.\n"
                    "Prompt and new tokens together fill at most data.seq_len positions.",
                    "  drivetrain generate configs/quickstart.yaml --prompt 'The license'\n"
                    "  drivetrain generate configs/smollm2-135m.yaml -p 'Once upon a time' -t 100 --temperature 0.8 "
                    "--top-k 50 --seed 1\n"};
  const auto values = parse_options(arguments, usage, options, {"config"});
  if (!values) return 0;
  const ConfigArguments source = config_arguments(*values);
  Config config = load_config(source.file, source.overrides);
  adopt_model_folder(config, (*values)["from"].as<std::string>());
  const Request request = read_request(*values, config);

  const auto world = open_world(comm_options(config));
  init_logging({.world_rank = world->rank(), .world_size = world->size(), .host = short_host_name()});
  RankPhase phase{"generate"};
  return run_rank(*world, phase, [&] {
    RankObjects rank = build_rank(config, world->split(0, world->rank()), TransformerOptions::Use::kInference);
    return generate(config, request, rank);
  });
}

}  // namespace drivetrain
