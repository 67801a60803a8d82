#include "launcher/commands.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "kernels/error.h"
#include "launcher/version.h"
#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

constexpr Command kCommands[] = {
    {"launch", "start and watch the ranks of a training run under mpirun", cmd_launch, Visibility::kListed},
    {"train", "one rank of a training run", cmd_train, Visibility::kListed},
    {"eval", "loss and perplexity on held-out data", cmd_eval, Visibility::kListed},
    {"generate", "continue a text", cmd_generate, Visibility::kListed},
    {"export", "a checkpoint as a Hugging Face folder", cmd_export, Visibility::kListed},
    {"plan", "parameters, FLOPs and memory of a run", cmd_plan, Visibility::kListed},
    {"ledger", "where the time of each step of a run went", cmd_ledger, Visibility::kListed},
    {"diagnose", "who holds a run up, why, and what it costs", cmd_diagnose, Visibility::kListed},
    {"trace", "all ranks of a run on one clock, for Perfetto", cmd_trace, Visibility::kListed},
    {"bench", "MFU of a configuration, where the rest went, what to try", cmd_bench, Visibility::kListed},
    {"comm", "measure and inspect the collectives", cmd_comm, Visibility::kListed},
    {"config-docs", "print docs/config.md", cmd_config_docs, Visibility::kHidden},
    {"rank-exec", "what mpirun starts for every rank", cmd_rank_exec, Visibility::kHidden},
};

void print_overview() {
  std::string text =
      "drivetrain trains transformers on many ranks and says where the time goes.\n"
      "\n"
      "usage: drivetrain COMMAND [ARGUMENTS]\n"
      "       drivetrain COMMAND --help\n"
      "       drivetrain --version\n"
      "\n"
      "commands:\n";
  for (const Command& command : commands()) {
    if (command.visibility == Visibility::kHidden) continue;
    std::string name = command.name;
    name.resize(12, ' ');
    text += "  " + name + command.summary + "\n";
  }
  text +=
      "\n"
      "examples:\n"
      "  drivetrain launch configs/quickstart.yaml -n 2\n"
      "  drivetrain launch configs/quickstart.yaml -n 4 --dry-run --set parallel.tp=2\n"
      "  mpirun -np 2 drivetrain train configs/quickstart.yaml\n";
  std::fputs(text.c_str(), stdout);
}

const Command& find_command(const std::string& name) {
  std::vector<std::string> known;
  for (const Command& command : commands()) {
    if (name == command.name) return command;
    if (command.visibility == Visibility::kListed) known.emplace_back(command.name);
  }
  const std::string near = nearest_word(name, known);
  throw Error(ErrorKind::kUsage, "unknown command '" + name + "'" +
                                     (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                     " ('drivetrain --help' lists all)");
}

}  // namespace

std::span<const Command> commands() {
  return kCommands;
}

int run_command_line(Arguments arguments) {
  if (arguments.empty()) {
    print_overview();
    return exit_code(ErrorKind::kUsage);
  }
  const std::string& first = arguments[0];
  const bool help = first == "--help" || first == "-h" || first == "help";
  if (help && arguments.size() > 1) {
    const std::vector<std::string> ask{"--help"};
    return find_command(arguments[1]).run(ask);
  }
  if (help) {
    print_overview();
    return 0;
  }
  if (first == "--version" || first == "-V") {
    std::printf("drivetrain %s\n", version());
    return 0;
  }
  return find_command(first).run(arguments.subspan(1));
}

}  // namespace drivetrain
