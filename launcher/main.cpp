// The entry of `drivetrain`: turns what a command throws into one critical line and its exit code.
#include <string>
#include <vector>

#include "launcher/commands.h"
#include "launcher/failure.h"
#include "runtime/comm/world.h"
#include "runtime/log.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    drivetrain::init_logging({});
    return drivetrain::run_command_line(arguments);
  } catch (...) {
    const int code = drivetrain::report_current_exception(arguments.empty() ? "start" : arguments[0]);
    if (drivetrain::process_place().world_size > 1) drivetrain::abort_world(code);  // no peer may wait for us
    return code;
  }
}
