// `drivetrain config-docs`: prints docs/config.md from the table of keys, so that the page cannot drift.
#include <cstdio>

#include "kernels/error.h"
#include "launcher/commands.h"
#include "runtime/config/config.h"

namespace drivetrain {
namespace {

std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '|' ? std::string("\\|") : std::string(1, c);
  return safe;
}

}  // namespace

int cmd_config_docs(Arguments arguments) {
  if (!arguments.empty()) throw Error(ErrorKind::kUsage, "config-docs takes no arguments");
  std::string text =
      "# Configuration\n"
      "\n"
      "Written by `drivetrain config-docs`; do not edit. One YAML file describes a run; every key has a default, "
      "and\n"
      "`--set section.key=value` on the command line wins over the file. `model`, `data.train` and one of `steps` "
      "and\n"
      "`epochs` have no default. Every fault is reported at once, with file, line, allowed values and the nearest "
      "key.\n"
      "`runs/<name>/config.yaml` holds the resolved configuration with the origin of each value.\n";
  std::string section = "none";
  for (const ConfigKey& key : config_keys()) {
    const std::size_t dot = key.key.find('.');
    const std::string in = dot == std::string::npos ? key.key : key.key.substr(0, dot);
    if (in != section)
      text += "\n## " + in + "\n\n| key | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
    section = in;
    text += "| `" + key.key + "` | " + cell(key.type) + " | `" + cell(key.default_value) + "` | " +
            cell(key.allowed) + " | " + cell(key.help) + " |\n";
  }
  text += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | done |\n";
  struct CodeMeaning {
    ErrorKind kind;
    const char* meaning;
  };
  constexpr CodeMeaning kMeanings[] = {
      {ErrorKind::kPreflight, "the machine cannot run this"},
      {ErrorKind::kLaunch, "the ranks could not be started"},
      {ErrorKind::kHang, "nobody moves"},
      {ErrorKind::kNodeLost, "a host went away"},
      {ErrorKind::kRestartsUsed, "the restarts are used up"},
      {ErrorKind::kNumeric, "NaN or infinity in the loss or the gradients"},
      {ErrorKind::kUsage, "wrong command line or configuration"},
      {ErrorKind::kData, "bad input data, tokenizer or weights"},
      {ErrorKind::kDevice, "the device is absent or refuses"},
      {ErrorKind::kLogic, "a fault of drivetrain itself"},
      {ErrorKind::kMemory, "it does not fit into memory"},
      {ErrorKind::kIo, "the file system refused"},
      {ErrorKind::kStopped, "stopped on request, with a checkpoint"},
      {ErrorKind::kComm, "a collective failed or a peer died"},
  };
  for (const CodeMeaning& row : kMeanings) {
    text += "| " + std::to_string(exit_code(row.kind)) + " | " + row.meaning + " |\n";
  }
  text += "| other | the first failing rank's own code; 128 + n for signal n |\n";
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace drivetrain
