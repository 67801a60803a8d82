// `drivetrain comm SUBCOMMAND`: the tools around the collectives, one row of a table each.
#include <cstdio>
#include <vector>

#include "kernels/error.h"
#include "launcher/commands.h"
#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

constexpr Command kTools[] = {
    {"bench", "bandwidth and latency of collectives and links, checked", cmd_comm_bench, Visibility::kListed},
    {"recorder", "what every rank of a failed job called last", cmd_comm_recorder, Visibility::kListed},
};

void print_help() {
  std::string text = "usage: drivetrain comm SUBCOMMAND [ARGUMENTS]\n\nsubcommands:\n";
  for (const Command& tool : kTools) {
    std::string name = tool.name;
    name.resize(12, ' ');
    text += "  " + name + tool.summary + "\n";
  }
  text +=
      "\nexamples:\n"
      "  drivetrain comm bench -n 2\n"
      "  drivetrain comm bench --help\n";
  std::fputs(text.c_str(), stdout);
}

}  // namespace

int cmd_comm(Arguments arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    print_help();
    return arguments.empty() ? exit_code(ErrorKind::kUsage) : 0;
  }
  std::vector<std::string> known;
  for (const Command& tool : kTools) {
    if (arguments[0] == tool.name) return tool.run(arguments.subspan(1));
    known.emplace_back(tool.name);
  }
  const std::string near = nearest_word(arguments[0], known);
  throw Error(ErrorKind::kUsage, "unknown subcommand 'comm " + arguments[0] + "'" +
                                     (near.empty() ? "" : "; did you mean 'comm " + near + "'?") +
                                     " ('drivetrain comm --help' lists all)");
}

}  // namespace drivetrain
