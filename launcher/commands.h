// The table of the commands of `drivetrain`. A command is a name, a line of help and a function; main() knows no more.
#pragma once
#include <span>
#include <string>

namespace drivetrain {

using Arguments = std::span<const std::string>;  // after the command's name

enum class Visibility { kListed, kHidden };

struct Command {
  const char* name;
  const char* summary;
  int (*run)(Arguments);  // returns the exit code; throws Error
  Visibility visibility;
};

std::span<const Command> commands();

// Runs `drivetrain ARGUMENTS...` and returns its exit code. Throws Error; kUsage names the nearest command.
int run_command_line(Arguments arguments);

int cmd_bench(Arguments arguments);
int cmd_comm(Arguments arguments);
int cmd_comm_bench(Arguments arguments);
int cmd_comm_recorder(Arguments arguments);
int cmd_config_docs(Arguments arguments);
int cmd_diagnose(Arguments arguments);
int cmd_eval(Arguments arguments);
int cmd_export(Arguments arguments);
int cmd_generate(Arguments arguments);
int cmd_ledger(Arguments arguments);
int cmd_plan(Arguments arguments);
int cmd_trace(Arguments arguments);
int cmd_train(Arguments arguments);
int cmd_launch(Arguments arguments);
int cmd_rank_exec(Arguments arguments);

}  // namespace drivetrain
