#include "launcher/hosts.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "kernels/error.h"
#include "launcher/host_names.h"

namespace drivetrain {
namespace {

constexpr int kMostSlots = 100000;

bool read_count(const std::string& text, int& out) {
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), out);
  return status == std::errc() && end == text.data() + text.size() && out >= 1 && out <= kMostSlots;
}

// Collects hosts of one source and the faults of all its entries.
class ListBuilder {
 public:
  explicit ListBuilder(std::string source) { list_.source = std::move(source); }

  // where: "" or "file:line: "
  void add(const std::string& where, const std::string& names, const std::string& slots) {
    int count = 0;
    if (!slots.empty() && !read_count(slots, count)) {
      return fault(where + "'" + slots + "' is not a number of slots (1 to " + std::to_string(kMostSlots) + ")");
    }
    std::vector<std::string> expanded;
    try {
      expanded = expand_host_names(names);
    } catch (const Error& error) {
      return fault(where + error.what());
    }
    for (const std::string& name : expanded) {
      if (!seen_.insert(name).second) fault(where + "host '" + name + "' is listed twice");
      list_.hosts.push_back({name, count});
    }
  }

  void fault(const std::string& text) { faults_.push_back(text); }

  HostList finish() {
    const auto said =
        std::count_if(list_.hosts.begin(), list_.hosts.end(), [](const auto& h) { return h.slots > 0; });
    if (said != 0 && said != static_cast<std::ptrdiff_t>(list_.hosts.size())) {
      fault("some hosts have a number of slots and some have none; give it for all or for none");
    }
    if (list_.hosts.empty() && faults_.empty()) fault("names no host");
    if (faults_.empty()) return list_;
    std::string message = "the hosts of " + list_.source + " cannot be used:";
    for (const std::string& text : faults_) message += "\n  " + text;
    throw Error(ErrorKind::kUsage, message);
  }

  const HostList& list() const { return list_; }

 private:
  HostList list_;
  std::set<std::string> seen_;
  std::vector<std::string> faults_;
};

void add_host_option(ListBuilder& builder, const std::string& text) {
  for (const std::string& entry : split_outside_brackets(text)) {
    const std::size_t colon = entry.rfind(':');
    if (colon == std::string::npos) {
      builder.add("", entry, "");
    } else if (colon + 1 == entry.size()) {
      builder.fault("'" + entry + "' ends in ':'; write HOST:SLOTS");
    } else {
      builder.add("", entry.substr(0, colon), entry.substr(colon + 1));
    }
  }
}

// Lines "name", "name:2", "name slots=2 max_slots=4"; '#' starts a comment.
void add_hostfile(ListBuilder& builder, const std::string& file) {
  std::ifstream stream(file);
  if (!stream || std::filesystem::is_directory(file)) {
    return builder.fault("'" + file + "' cannot be read; a hostfile that is named must exist");
  }
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name, word, slots;
    if (!(words >> name)) continue;
    const std::string where = file + ":" + std::to_string(number) + ": ";
    const std::size_t colon = name.rfind(':');
    if (colon != std::string::npos) {
      slots = name.substr(colon + 1);
      name.resize(colon);
    }
    while (words >> word) {
      if (word.starts_with("slots=")) {
        slots = word.substr(6);
      } else if (!word.starts_with("max_slots=") && !word.starts_with("max-slots=")) {
        builder.fault(where + "'" + word + "' is not understood; wants 'NAME slots=N'");
      }
    }
    builder.add(where, name, slots);
  }
}

std::string value_of(const Environment& environment, const std::string& key) {
  const auto found = environment.find(key);
  return found == environment.end() ? "" : found->second;
}

// "2(x3),1" is 2 2 2 1; empty when it is not that.
std::vector<int> expand_tasks_per_node(const std::string& text) {
  std::vector<int> tasks;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t open = part.find("(x");
    int count = 0, times = 1;
    const bool repeated = open != std::string::npos;
    if (!read_count(part.substr(0, open), count)) return {};
    if (repeated && (part.back() != ')' || !read_count(part.substr(open + 2, part.size() - open - 3), times)))
      return {};
    tasks.insert(tasks.end(), static_cast<std::size_t>(times), count);
  }
  return tasks;
}

HostList slurm_hosts(const Environment& environment) {
  ListBuilder builder("the Slurm allocation");
  const std::string tasks_text = value_of(environment, "SLURM_TASKS_PER_NODE");
  const std::vector<int> tasks = expand_tasks_per_node(tasks_text);
  std::vector<std::string> names;
  try {
    names = expand_host_names(value_of(environment, "SLURM_JOB_NODELIST"));
  } catch (const Error& error) {
    builder.fault(std::string("SLURM_JOB_NODELIST: ") + error.what());
    return builder.finish();
  }
  if (!tasks_text.empty() && tasks.size() != names.size()) {
    builder.fault("SLURM_TASKS_PER_NODE is '" + tasks_text + "', which does not fit " + std::to_string(names.size()) +
                  " nodes");
    return builder.finish();
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    builder.add("", names[i], tasks.empty() ? "" : std::to_string(tasks[i]));
  }
  return builder.finish();
}

std::string mpijob_hostfile(const Environment& environment) {
  const std::string named = value_of(environment, "OMPI_MCA_orte_default_hostfile");
  if (!named.empty()) return named;
  return value_of(environment, "K_MPI_JOB_ROLE") == "launcher" ? "/etc/mpi/hostfile" : "";
}

void refuse_outside_allocation(ListBuilder& builder, const Environment& environment) {
  const std::string nodes = value_of(environment, "SLURM_JOB_NODELIST");
  if (nodes.empty()) return;
  const std::vector<std::string> inside = expand_host_names(nodes);
  for (const HostSlots& host : builder.list().hosts) {
    if (std::find(inside.begin(), inside.end(), host.name) == inside.end()) {
      builder.fault("host '" + host.name + "' is outside the Slurm allocation " + nodes);
    }
  }
}

}  // namespace

HostList choose_hosts(const HostRequest& request) {
  if (!request.host_option.empty() || !request.hostfile.empty()) {
    const bool by_option = !request.host_option.empty();
    ListBuilder builder(by_option ? "--host" : "hostfile " + request.hostfile);
    if (by_option) add_host_option(builder, request.host_option);
    if (!by_option) add_hostfile(builder, request.hostfile);
    refuse_outside_allocation(builder, request.environment);
    return builder.finish();
  }
  if (!value_of(request.environment, "SLURM_JOB_NODELIST").empty()) return slurm_hosts(request.environment);
  const std::string mpijob = mpijob_hostfile(request.environment);
  if (!mpijob.empty()) {
    ListBuilder builder("the MPIJob hostfile " + mpijob);
    add_hostfile(builder, mpijob);
    return builder.finish();
  }
  return {{{"localhost", std::max(1, request.local_cores)}}, "this machine"};
}

int total_slots(const HostList& list) {
  return std::accumulate(list.hosts.begin(), list.hosts.end(), 0,
                         [](int sum, const auto& h) { return sum + h.slots; });
}

std::vector<int> place_ranks(const HostList& list, int ranks) {
  std::vector<int> placed(list.hosts.size(), 0);
  const int hosts = static_cast<int>(placed.size());
  int left = ranks;
  for (int h = 0; h < hosts; ++h) {
    placed[h] = std::min(left, list.hosts[h].slots);
    left -= placed[h];
  }
  for (int h = 0; h < hosts; ++h) placed[h] += left / hosts + (h < left % hosts ? 1 : 0);
  return placed;
}

bool resolves(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

void wait_for_names(const HostList& list, std::chrono::milliseconds patience, const Resolver& resolver,
                    const std::function<void(const std::string&)>& progress) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> missing;
  for (const HostSlots& host : list.hosts) missing.push_back(host.name);
  while (true) {
    std::erase_if(missing, resolver);
    if (missing.empty()) return;
    std::string names;
    for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
    const auto waited = std::chrono::steady_clock::now() - start;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
    if (waited >= patience) {
      throw Error(ErrorKind::kLaunch, "these hosts do not resolve to an address after " + std::to_string(seconds) +
                                          " s: " + names + "; check the names of " + list.source +
                                          " or wait longer with --wait-hosts SECONDS");
    }
    progress("waiting for the address of " + names + " (" + std::to_string(seconds) + " s)");
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(patience - waited);
    std::this_thread::sleep_for(std::min(left, std::chrono::milliseconds(1000)));
  }
}

}  // namespace drivetrain
