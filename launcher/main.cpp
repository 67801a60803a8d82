// The entry of `drivetrain`: turns what a command throws into one critical line and its exit code.
#include <csignal>
#include <string>
#include <vector>

#include "launcher/commands.h"
#include "launcher/failure.h"
#include "runtime/comm/world.h"
#include "runtime/log.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is an error of the write that meets it, not a death
  const drivetrain::ProcessPlace place = drivetrain::process_place();
  try {
    drivetrain::init_logging(
        {.world_rank = place.world_rank, .world_size = place.world_size, .host = drivetrain::short_host_name()});
    return drivetrain::run_command_line(arguments);
  } catch (...) {
    const int code = drivetrain::report_current_exception(arguments.empty() ? "start" : arguments[0]);
    if (place.world_size > 1) drivetrain::leave_failed(code);  // no peer may wait for us
    return code;
  }
}
