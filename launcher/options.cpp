#include "launcher/options.h"

#include <cstdio>
#include <sstream>

#include "kernels/error.h"
#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

namespace po = boost::program_options;

[[noreturn]] void refuse(const std::string& message, const Usage& usage) {
  // The words before the first that stands for something.
  std::string command = usage.synopsis.substr(0, usage.synopsis.find_first_of("[ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
  command.erase(command.find_last_not_of(' ') + 1);
  throw Error(ErrorKind::kUsage, message + " ('drivetrain " + command + " --help' lists the options)");
}

std::string nearest_option(const std::string& wrong, const OptionList& options) {
  std::vector<std::string> known;
  for (const auto& option : options.options()) known.push_back("--" + option->long_name());
  const std::string name = wrong.substr(0, wrong.find('='));
  return nearest_word(name.starts_with("--") ? name : "--" + name.substr(name.find_first_not_of('-')), known);
}

void print_help(const Usage& usage, const OptionList& options) {
  std::ostringstream text;
  text << "usage: drivetrain " << usage.synopsis << "\n\n" << usage.about << "\n\n" << options;
  if (!usage.examples.empty()) text << "\nexamples:\n" << usage.examples;
  std::fputs(text.str().c_str(), stdout);
}

}  // namespace

std::optional<OptionValues> parse_options(Arguments arguments, const Usage& usage, const OptionList& options,
                                          const std::vector<std::string>& positional) {
  OptionList visible(options);
  visible.add_options()("help,h", "print this help");
  OptionList all(visible);
  po::positional_options_description places;
  for (const std::string& name : positional) {
    places.add(name.c_str(), 1);
    if (options.find_nothrow(name, false) == nullptr) all.add_options()(name.c_str(), po::value<std::string>());
  }
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    OptionValues values;
    const std::vector<std::string> words(arguments.begin(), arguments.end());
    po::store(po::command_line_parser(words).options(all).positional(places).style(style).run(), values);
    if (values.count("help") > 0) {
      print_help(usage, visible);
      return std::nullopt;
    }
    po::notify(values);
    return values;
  } catch (const po::unknown_option& error) {
    const std::string near = nearest_option(error.get_option_name(), visible);
    refuse(
        "unknown option '" + error.get_option_name() + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
        usage);
  } catch (const po::too_many_positional_options_error&) {
    refuse("too many arguments; wanted: drivetrain " + usage.synopsis, usage);
  } catch (const po::error& error) {
    refuse(error.what(), usage);
  }
}

void add_config_options(OptionList& options) {
  options.add_options()("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
                        "override a key of the configuration, as in optimizer.lr=1e-3; repeatable");
}

ConfigArguments config_arguments(const OptionValues& values) {
  ConfigArguments arguments;
  if (values.count("config") == 0) {
    throw Error(ErrorKind::kUsage, "no configuration file given; name a YAML file, as in configs/quickstart.yaml");
  }
  arguments.file = values["config"].as<std::string>();
  if (values.count("set") == 0) return arguments;
  for (const std::string& text : values["set"].as<std::vector<std::string>>()) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorKind::kUsage, "--set " + text + ": wants KEY=VALUE, as in optimizer.lr=1e-3");
    }
    arguments.overrides.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return arguments;
}

}  // namespace drivetrain
