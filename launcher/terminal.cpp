#include "launcher/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "launcher/rank_files.h"

namespace drivetrain {

int terminal_columns(int file_descriptor) {
  if (isatty(file_descriptor) == 0) return 0;
  winsize size{};
  const bool known = ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

int console_columns() {
  const char* told = std::getenv(kTerminalVariable);
  return told == nullptr ? terminal_columns(STDOUT_FILENO) : std::max(0, std::atoi(told));
}

}  // namespace drivetrain
