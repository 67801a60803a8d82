// What every command shares on the command line: --help with examples, the configuration file and --set. The door to
// Boost.Program_options; commands declare their options with it.
#pragma once
#include <boost/program_options.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/commands.h"
#include "runtime/config/config.h"

namespace drivetrain {

struct Usage {
  std::string synopsis;  // "launch CONFIG -n N [options]"
  std::string about;     // a sentence or two
  std::string examples;  // whole lines
};

using OptionValues = boost::program_options::variables_map;
using OptionList = boost::program_options::options_description;

// Parses arguments against options; `positional` names the options (declared in `options` or in `hidden`) that take the
// words without a dash, in order, one each. Prints help and returns nothing for --help. Throws kUsage naming the
// option and the nearest known one; a required option that is absent is named as its positional.
std::optional<OptionValues> parse_options(Arguments arguments, const Usage& usage, const OptionList& options,
                                          const std::vector<std::string>& positional);

// Adds --set; use with positional "config".
void add_config_options(OptionList& options);

struct ConfigArguments {
  std::filesystem::path file;
  std::vector<ConfigOverride> overrides;
};
// Throws kUsage when CONFIG is missing or a --set has no '='.
ConfigArguments config_arguments(const OptionValues& values);

}  // namespace drivetrain
