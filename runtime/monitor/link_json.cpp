#include "runtime/monitor/link_json.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernels/error.h"

namespace drivetrain {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& source, const std::string& why) {
  throw Error(ErrorKind::kConfig, source + ": " + why);
}

// The one list of names, for writing and reading.
template <class Object>
struct Fields;
template <>
struct Fields<Link> {
  static constexpr auto kTable = std::tuple{
      std::pair{"name", &Link::name},
      std::pair{"device", &Link::device},
      std::pair{"peer", &Link::peer},
      std::pair{"driver", &Link::driver},
      std::pair{"up", &Link::up},
      std::pair{"gb_per_s", &Link::gb_per_s},
      std::pair{"max_gb_per_s", &Link::max_gb_per_s},
      std::pair{"gen", &Link::gen},
      std::pair{"width", &Link::width},
      std::pair{"max_gen", &Link::max_gen},
      std::pair{"max_width", &Link::max_width},
      std::pair{"numa_node", &Link::numa_node},
      std::pair{"replays", &Link::replays},
      std::pair{"crc_errors", &Link::crc_errors},
      std::pair{"recoveries", &Link::recoveries},
  };
};
template <>
struct Fields<DevicePair> {
  static constexpr auto kTable = std::tuple{
      std::pair{"a", &DevicePair::a},
      std::pair{"b", &DevicePair::b},
      std::pair{"path", &DevicePair::path},
      std::pair{"nvlinks", &DevicePair::nvlinks},
      std::pair{"peer_to_peer", &DevicePair::peer_to_peer},
  };
};

// visit(key, member pointer) for each field.
template <class Object, class Visit>
void each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field.first, field.second), ...); }, Fields<Object>::kTable);
}

template <class Object>
json object_json(const Object& object) {
  json out = json::object();
  const Object defaults;
  each_field<Object>([&](const char* key, auto member) {
    const auto& value = object.*member;
    if (value == defaults.*member) return;
    if constexpr (requires { value.has_value(); })
      out[key] = *value;
    else
      out[key] = value;
  });
  return out;
}

template <class T>
void take(const json& from, T& to) {
  from.get_to(to);
}
template <class T>
void take(const json& from, std::optional<T>& to) {
  to = from.get<T>();
}

template <class Object>
Object parse_object(const json& from, const std::string& source, const std::string& extra_key) {
  if (!from.is_object()) refuse(source, "wants an object, got " + from.dump());
  Object out;
  std::vector<std::string> known{extra_key};
  each_field<Object>([&](const char* key, auto member) {
    known.emplace_back(key);
    if (!from.contains(key)) return;
    try {
      take(from[key], out.*member);
    } catch (const json::exception&) {
      refuse(source, std::string(key) + ": " + from[key].dump() + " has the wrong type");
    }
  });
  for (const auto& [key, value] : from.items())
    if (std::find(known.begin(), known.end(), key) == known.end()) refuse(source, key + ": unknown field");
  return out;
}

class ScriptedLinks final : public LinkInspector {
 public:
  explicit ScriptedLinks(std::vector<LinkReport> frames) : frames_(std::move(frames)) {}
  LinkReport inspect() override { return frames_[std::min(next_++, frames_.size() - 1)]; }

 private:
  std::vector<LinkReport> frames_;
  std::size_t next_ = 0;
};

}  // namespace

json to_json(const LinkReport& report) {
  json out{{"links", json::array()}, {"pairs", json::array()}};
  for (const Link& link : report.links) {
    json one = object_json(link);
    one["kind"] = name(link.kind);
    out["links"].push_back(std::move(one));
  }
  for (const DevicePair& pair : report.pairs) out["pairs"].push_back(object_json(pair));
  return out;
}

LinkReport link_report(const json& from, const std::string& source) {
  if (!from.is_object() || !from.contains("links")) refuse(source, "wants {\"links\": [...]}");
  LinkReport report;
  for (const json& one : from["links"]) {
    Link link = parse_object<Link>(one, source, "kind");
    const std::string kind = one.contains("kind") && one["kind"].is_string() ? one["kind"].get<std::string>() : "";
    const auto known = link_kind(kind);
    if (!known) refuse(source, "kind '" + kind + "' is not one of nvlink | pcie | shared memory | tcp");
    link.kind = *known;
    if (link.name.empty()) refuse(source, "a link of kind '" + kind + "' has no name");
    report.links.push_back(std::move(link));
  }
  if (from.contains("pairs"))
    for (const json& one : from["pairs"]) report.pairs.push_back(parse_object<DevicePair>(one, source, ""));
  return report;
}

std::unique_ptr<LinkInspector> scripted_links(const std::string& text, const std::string& source) {
  const json script = json::parse(text, nullptr, false);
  if (script.is_discarded()) refuse(source, "is not JSON");
  std::vector<LinkReport> frames;
  if (script.is_object() && script.contains("frames")) {
    for (const json& frame : script["frames"]) frames.push_back(link_report(frame, source));
    if (frames.empty()) refuse(source, "frames: is empty, wants at least one report");
  } else {
    frames.push_back(link_report(script, source));
  }
  return std::make_unique<ScriptedLinks>(std::move(frames));
}

}  // namespace drivetrain
