// `drivetrain comm recorder FILE`: prints flight recorder files.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "kernels/error.h"
#include "launcher/commands.h"
#include "launcher/options.h"
#include "launcher/recorder_report.h"

namespace drivetrain {
namespace {

std::vector<std::filesystem::path> recorder_files(const std::filesystem::path& given) {
  if (!std::filesystem::is_directory(given)) return {given};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(given)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("recorder-") && name.ends_with(".bin")) files.push_back(entry.path());
  }
  if (files.empty()) throw Error(ErrorKind::kIo, given.string() + ": holds no recorder-*.bin");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int cmd_comm_recorder(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("file", po::value<std::string>()->required()->value_name("FILE"),
                        "a recorder-<host>.bin, or the folder with those of all hosts");
  options.add_options()("json", "as JSON");
  options.add_options()("last", po::value<int>()->default_value(20)->value_name("N"), "calls to show of every rank");
  const Usage usage{
      "comm recorder FILE [options]",
      "Prints what every rank of a failed job called last, the first call in which ranks differ, and who "
      "is behind.\nA job leaves the files in runs/<name>/attempt-K.",
      "  drivetrain comm recorder runs/quickstart/attempt-0\n"
      "  drivetrain comm recorder recorder-node1.bin --last 5\n"};
  const auto values = parse_options(arguments, usage, options, {"file"});
  if (!values) return 0;
  const int last = (*values)["last"].as<int>();
  if (last < 0) throw Error(ErrorKind::kUsage, "--last " + std::to_string(last) + ": wants 0 or more");
  std::vector<FlightFile> files;
  for (const auto& path : recorder_files((*values)["file"].as<std::string>()))
    files.push_back(read_flight_file(path));
  const auto shown = static_cast<std::size_t>(last);
  std::fputs((values->count("json") > 0 ? recorder_json(files, shown) : recorder_text(files, shown)).c_str(), stdout);
  return 0;
}

}  // namespace drivetrain
