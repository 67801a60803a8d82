#include "launcher/machine_facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <bit>
#include <filesystem>
#include <sstream>

#include "kernels/error.h"
#include "launcher/cpu_share.h"
#include "launcher/process.h"
#include "launcher/terminal.h"
#include "runtime/log.h"

namespace drivetrain {
namespace {

std::string find_in_path(const std::string& name, const Environment& environment) {
  const auto runnable = [](const std::string& file) {
    return access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file);
  };
  if (name.find('/') != std::string::npos) return runnable(name) ? std::filesystem::absolute(name).string() : "";
  const auto path = environment.find("PATH");
  std::istringstream folders(path == environment.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (runnable(file)) return file;
  }
  return "";
}

}  // namespace

std::vector<NetworkInterface> network_interfaces() {
  std::vector<NetworkInterface> list;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return list;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const bool usable = one->ifa_addr != nullptr && one->ifa_netmask != nullptr && (one->ifa_flags & IFF_UP) != 0;
    if (!usable || one->ifa_addr->sa_family != AF_INET) continue;
    const in_addr_t mask = reinterpret_cast<const sockaddr_in*>(one->ifa_netmask)->sin_addr.s_addr;
    in_addr network{reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr & mask};
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &network, text, sizeof text);
    list.push_back({one->ifa_name, std::string(text) + "/" + std::to_string(std::popcount(mask))});
  }
  freeifaddrs(first);
  return list;
}

Environment own_environment() {
  Environment variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string text = *one;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

MachineFacts gather_machine_facts(const std::string& mpirun) {
  MachineFacts facts;
  facts.environment = own_environment();
  facts.mpirun = find_in_path(mpirun, facts.environment);
  if (!facts.mpirun.empty()) facts.mpirun_version = output_of({facts.mpirun, "--version"});
  facts.program = std::filesystem::read_symlink("/proc/self/exe").string();
  facts.host_name = short_host_name();
  facts.cores = count_cores(allowed_cpus());
  facts.terminal_columns = terminal_columns(STDOUT_FILENO);
  facts.user = geteuid() == 0 ? MachineFacts::User::kRoot : MachineFacts::User::kOther;
  facts.interfaces = network_interfaces();
  return facts;
}

}  // namespace drivetrain
