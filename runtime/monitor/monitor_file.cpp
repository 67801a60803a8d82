#include "runtime/monitor/monitor_file.h"

#include <charconv>
#include <cmath>
#include <fstream>

#include "kernels/error.h"
#include "runtime/monitor/link_json.h"

namespace drivetrain {
namespace {

using nlohmann::json;

// Six digits are more than any sensor has, and keep a day of samples small.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr};
}

template <class Sample>
std::string fields_text(std::span<const ReadingField<Sample>> fields, const Sample& sample) {
  std::string text;
  for (const auto& field : fields) {
    const Reading& value = sample.*field.value;
    if (!value) continue;
    text += (text.empty() ? "\"" : ", \"") + std::string(field.key) + "\": " + number(*value);
  }
  return text;
}

// Names of programs may hold any bytes.
std::string quoted(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// `, "key": [{...}, {...}]`; nothing for an empty list.
template <class Item, class Text>
std::string list_text(const char* key, const std::vector<Item>& items, Text&& text) {
  std::string all;
  for (const Item& item : items) all += (all.empty() ? "{" : ", {") + text(item) + "}";
  return all.empty() ? "" : ", \"" + std::string(key) + "\": [" + all + "]";
}

// Leaves `to` as it is for a key that is not there or has no number.
void read_number(const json& from, const char* key, Reading& to) {
  if (from.contains(key) && from[key].is_number()) to = from[key].get<double>();
}

template <class Sample>
void read_fields(const json& from, std::span<const ReadingField<Sample>> fields, Sample& sample) {
  for (const auto& field : fields) read_number(from, field.key, sample.*field.value);
}

json reading_json(const Reading& value) {
  return value ? json(*value) : json(nullptr);
}
Reading reading(const json& from, const char* key) {
  return from.at(key).is_null() ? Reading() : Reading(from.at(key).get<double>());
}

HostFacts facts_from(const json& from) {
  HostFacts f;
  from.at("host").get_to(f.host);
  from.at("world_rank").get_to(f.world_rank);
  from.at("local_rank").get_to(f.local_rank);
  from.at("local_size").get_to(f.local_size);
  from.at("compute_threads").get_to(f.compute_threads);
  from.at("online_cpus").get_to(f.online_cpus);
  from.at("affinity").get_to(f.affinity);
  from.at("affinity_cpus").get_to(f.affinity_cpus);
  from.at("affinity_nodes").get_to(f.affinity_nodes);
  from.at("numa_nodes").get_to(f.numa_nodes);
  from.at("cpu_model").get_to(f.cpu_model);
  from.at("kernel").get_to(f.kernel);
  from.at("governor").get_to(f.governor);
  from.at("thp").get_to(f.thp);
  from.at("kernel_flags").get_to(f.kernel_flags);
  f.cpu_limit = reading(from, "cpu_limit");
  f.memory_limit = reading(from, "memory_limit");
  f.shm_size = reading(from, "shm_size");
  f.shm_free = reading(from, "shm_free");
  from.at("acs_redirects").get_to(f.acs_redirects);
  from.at("environment").get_to(f.environment);
  return f;
}

MonitorSample sample_from(const json& from) {
  MonitorSample s;
  from.at("time_s").get_to(s.time_s);
  from.at("clock_ns").get_to(s.clock_ns);
  from.at("cost_ms").get_to(s.cost_ms);
  read_fields(from.at("process"), process_fields(), s.process);
  if (from.contains("host")) read_fields(from["host"], host_fields(), s.host.emplace());
  if (from.contains("devices"))
    for (const json& device : from["devices"]) {
      DeviceSample d;
      device.at("pci").get_to(d.pci);
      device.at("name").get_to(d.name);
      read_fields(device, device_fields(), d);
      s.devices.push_back(std::move(d));
    }
  if (from.contains("neighbours"))
    for (const json& one : from["neighbours"])
      s.neighbours.push_back({one.at("pid").get<int>(), one.at("name").get<std::string>(),
                              one.at("cpu_cores").get<double>(), one.at("cpu").get<int>()});
  return s;
}

void add_line(const json& line, const std::string& where, MonitorLog& log) {
  const std::string kind = line.at("kind").get<std::string>();
  if (kind == "facts") {
    log.facts.push_back(facts_from(line));
  } else if (kind == "sample") {
    log.samples.push_back(sample_from(line));
  } else if (kind == "links") {
    log.links.push_back({line.at("time_s").get<double>(), line.at("clock_ns").get<std::int64_t>(),
                         line.at("under_load").get<bool>(), link_report(line, where)});
  } else {
    throw Error(ErrorKind::kData, where + ": unknown kind '" + kind + "'");
  }
}

}  // namespace

std::string to_line(const HostFacts& f) {
  return json{{"kind", "facts"},
              {"host", f.host},
              {"world_rank", f.world_rank},
              {"local_rank", f.local_rank},
              {"local_size", f.local_size},
              {"compute_threads", f.compute_threads},
              {"online_cpus", f.online_cpus},
              {"affinity", f.affinity},
              {"affinity_cpus", f.affinity_cpus},
              {"affinity_nodes", f.affinity_nodes},
              {"numa_nodes", f.numa_nodes},
              {"cpu_model", f.cpu_model},
              {"kernel", f.kernel},
              {"governor", f.governor},
              {"thp", f.thp},
              {"kernel_flags", f.kernel_flags},
              {"cpu_limit", reading_json(f.cpu_limit)},
              {"memory_limit", reading_json(f.memory_limit)},
              {"shm_size", reading_json(f.shm_size)},
              {"shm_free", reading_json(f.shm_free)},
              {"acs_redirects", f.acs_redirects},
              {"environment", f.environment}}
      .dump(-1, ' ', false, json::error_handler_t::replace);  // an environment may hold any bytes
}

std::string to_line(const MonitorSample& s) {
  std::string line = "{\"kind\": \"sample\", \"time_s\": " + std::to_string(s.time_s) +
                     ", \"clock_ns\": " + std::to_string(s.clock_ns) + ", \"cost_ms\": " + number(s.cost_ms) +
                     ", \"process\": {" + fields_text(process_fields(), s.process) + "}";
  if (s.host) line += ", \"host\": {" + fields_text(host_fields(), *s.host) + "}";
  line += list_text("devices", s.devices, [](const DeviceSample& device) {
    const std::string fields = fields_text(device_fields(), device);
    return "\"pci\": " + quoted(device.pci) + ", \"name\": " + quoted(device.name) +
           (fields.empty() ? "" : ", " + fields);
  });
  line += list_text("neighbours", s.neighbours, [](const Neighbour& one) {
    return "\"pid\": " + std::to_string(one.pid) + ", \"name\": " + quoted(one.name) +
           ", \"cpu_cores\": " + number(one.cpu_cores) + ", \"cpu\": " + std::to_string(one.cpu);
  });
  return line + "}";
}

std::string to_line(const LinkSample& s) {
  json line = to_json(s.report);
  line["kind"] = "links";
  line["time_s"] = s.time_s;
  line["clock_ns"] = s.clock_ns;
  line["under_load"] = s.under_load;
  return line.dump();
}

MonitorLog read_monitor(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw Error(ErrorKind::kIo, "cannot read " + file.string());
  MonitorLog log;
  std::string text;
  for (int number = 1; std::getline(in, text) && !in.eof(); ++number) {
    const std::string where = file.string() + ":" + std::to_string(number);
    try {
      add_line(json::parse(text), where, log);
    } catch (const json::exception& error) {
      throw Error(ErrorKind::kData, where + ": " + error.what());
    }
  }
  return log;
}

}  // namespace drivetrain
