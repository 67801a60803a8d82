#include "launcher/environment_list.h"

#include <algorithm>
#include <cctype>

#include "kernels/error.h"

namespace drivetrain {
namespace {

bool is_variable(const std::string& name) {
  const auto word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), word);
}

}  // namespace

bool is_passed_on(const std::string& name) {
  constexpr std::string_view kPrefixes[] = {"NCCL_", "UCX_",    "OMP_",  "GOMP_",      "KMP_",
                                            "CUDA_", "ONEDNN_", "DNNL_", "DRIVETRAIN_"};
  if (name == "PATH" || name == "LD_LIBRARY_PATH") return true;
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](auto prefix) { return name.starts_with(prefix); });
}

bool is_secret(const std::string& name) {
  constexpr std::string_view kParts[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"};
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [&](auto part) { return upper.find(part) != std::string::npos; });
}

Environment parse_environment_options(const std::vector<std::string>& options, const Environment& own) {
  Environment chosen;
  std::string faults;
  for (const std::string& option : options) {
    const std::size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const auto found = own.find(name);
    if (!is_variable(name)) {
      faults += "\n  --env '" + option + "': '" + name + "' is not a variable name (letters, digits, '_')";
    } else if (equals != std::string::npos) {
      chosen[name] = option.substr(equals + 1);
    } else if (found != own.end()) {
      chosen[name] = found->second;
    } else {
      faults += "\n  --env " + option + ": not set here; give " + option + "=VALUE";
    }
  }
  if (!faults.empty()) throw Error(ErrorKind::kUsage, "the variables for the ranks cannot be used:" + faults);
  return chosen;
}

}  // namespace drivetrain
