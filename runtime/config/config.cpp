#include "runtime/config/config.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "kernels/error.h"
#include "runtime/config/check_config.h"
#include "runtime/config/key_table.h"
#include "runtime/config/nearest.h"
#include "runtime/config/store_value.h"
#include "runtime/config/yaml_tree.h"

namespace drivetrain {
namespace {

constexpr std::size_t kLargestFile_bytes = std::size_t{1} << 20;

// One place that sets keys: the file, or one --set option.
struct Source {
  std::string name;  // "tiny.yaml" or "--set a.b=c"
  bool has_lines;
  std::string at(int line) const { return has_lines && line > 0 ? name + ":" + std::to_string(line) : name; }
};

std::string suggestion(const std::string& key) {
  std::vector<std::string> candidates;
  const std::string last = key.substr(key.rfind('.') + 1);
  for (const KeyRow& row : key_table()) {
    const std::string known(row.key);
    if (known.substr(known.rfind('.') + 1) == last) return known;
    candidates.push_back(known);
    const std::string section = known.substr(0, known.find('.'));
    if (std::find(candidates.begin(), candidates.end(), section) == candidates.end()) candidates.push_back(section);
  }
  return nearest_word(key, candidates);
}

std::string read_file(const std::filesystem::path& file) {
  const std::string shown = file.string();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) {
    throw Error(ErrorKind::kConfig, shown + ": no such file; the configuration is a YAML file");
  }
  if (std::filesystem::is_directory(file, error)) {
    throw Error(ErrorKind::kConfig, shown + ": is a folder; name the YAML file");
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text(kLargestFile_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.is_open() || stream.bad())
    throw Error(ErrorKind::kConfig, shown + ": cannot be read; check its permissions");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kLargestFile_bytes) {
    throw Error(ErrorKind::kConfig, shown + ": is larger than 1 MiB; is it a configuration?");
  }
  return text;
}

// Builds a Config from its sources and collects the faults.
class Loader {
 public:
  void load(const std::filesystem::path& file, const std::vector<ConfigOverride>& overrides) {
    file_ = file.string();
    const Source source{file_, true};
    std::vector<YamlFault> syntax;
    const YamlNode root = parse_yaml(read_file(file), syntax);
    for (const YamlFault& fault : syntax) faults_.push_back(source.at(fault.line) + ": " + fault.message);
    if (syntax.empty() && root.kind == YamlNode::Kind::kNull) faults_.push_back(file_ + ": is empty");
    apply("", root, source);
    for (const ConfigOverride& one : overrides) apply_override(one);
    displace(overrides);
    if (syntax.empty() && root.kind == YamlNode::Kind::kMap) check();
  }

  void throw_faults() const {
    if (faults_.empty()) return;
    std::string message =
        "the configuration has " + std::to_string(faults_.size()) + (faults_.size() == 1 ? " fault:" : " faults:");
    for (const std::string& fault : faults_) message += "\n  " + fault;
    throw Error(ErrorKind::kConfig, message);
  }

  const Config& config() const { return config_; }
  std::string origin(const std::string& key) const {
    const auto found = origins_.find(key);
    return found == origins_.end() ? "default" : found->second;
  }

 private:
  void apply(const std::string& key, const YamlNode& node, const Source& source) {
    if (const KeyRow* row = find_key(key)) return store(*row, node, source);
    if (node.kind == YamlNode::Kind::kNull) return;
    if (node.kind != YamlNode::Kind::kMap) {
      const std::string what = key.empty() ? "" : key + ": ";
      faults_.push_back(source.at(node.line) + ": " + what + "wants 'key: value' lines here");
      return;
    }
    refuse_duplicates(key, node, source);
    for (const YamlEntry& entry : node.entries) {
      const std::string child = key.empty() ? entry.key : key + "." + entry.key;
      if (entry.key.find('.') != std::string::npos) {
        faults_.push_back(source.at(entry.line) + ": " + child + ": a key of the file has no dot; nest it, as in " +
                          entry.key.substr(0, entry.key.find('.')) + ": {" +
                          entry.key.substr(entry.key.find('.') + 1) + ": ...}");
      } else if (find_key(child) != nullptr || is_section(child)) {
        apply(child, entry.value, source);
      } else {
        unknown(child, source.at(entry.line));
      }
    }
  }

  void store(const KeyRow& row, const YamlNode& node, const Source& source) {
    const std::string key(row.key);
    if (node.kind == YamlNode::Kind::kMap) refuse_duplicates(key, node, source);
    const std::string fault = store_value(row, node, config_);
    origins_[key] = source.at(node.line);
    if (fault.empty()) return;
    bad_.insert(key);
    faults_.push_back(source.at(node.line) + ": " + key + ": " + fault);
  }

  void refuse_duplicates(const std::string& key, const YamlNode& node, const Source& source) {
    std::map<std::string, int> first_line;
    for (const YamlEntry& entry : node.entries) {
      const auto [found, is_new] = first_line.emplace(entry.key, entry.line);
      const std::string name = key.empty() ? entry.key : key + "." + entry.key;
      if (!is_new) {
        faults_.push_back(source.at(entry.line) + ": " + name + ": given twice, first in line " +
                          std::to_string(found->second));
      }
    }
  }

  void unknown(const std::string& key, const std::string& where) {
    const std::string near = suggestion(key);
    bad_.insert(near);
    faults_.push_back(where + ": " + key + ": unknown key" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  void apply_override(const ConfigOverride& one) {
    const Source source{"--set " + one.key + "=" + one.value, false};
    std::vector<YamlFault> syntax;
    YamlNode node = parse_yaml(one.value, syntax);
    for (const YamlFault& fault : syntax) faults_.push_back(source.name + ": " + fault.message);
    if (!syntax.empty()) return;
    if (one.value.empty()) node.kind = YamlNode::Kind::kScalar;
    if (find_key(one.key) != nullptr || is_section(one.key)) return apply(one.key, node, source);
    const std::size_t dot = one.key.rfind('.');
    const KeyRow* parent = dot == std::string::npos ? nullptr : find_key(one.key.substr(0, dot));
    if (parent == nullptr || type_of(*parent) != "map") return unknown(one.key, source.name);
    YamlNode map;
    map.kind = YamlNode::Kind::kMap;
    map.entries.push_back({one.key.substr(dot + 1), 0, node});
    store(*parent, map, source);
  }

  // An option that names one of two exclusive keys replaces the other one of the file.
  void displace(const std::vector<ConfigOverride>& overrides) {
    const auto set = [&](const char* key) {
      return std::any_of(overrides.begin(), overrides.end(), [&](const auto& one) { return one.key == key; });
    };
    if (set("steps") && !set("epochs")) config_.epochs = 0;
    if (set("epochs") && !set("steps")) config_.steps = 0;
    if (set("model.path") && !set("model.preset")) config_.model.preset.clear();
    if (set("model.preset") && !set("model.path")) config_.model.path.clear();
  }

  void check() {
    for (const ConfigFault& fault : check_config(config_)) {
      const bool known_bad =
          std::any_of(fault.keys.begin(), fault.keys.end(), [&](const auto& key) { return bad_.count(key) > 0; });
      if (known_bad) continue;
      const auto found = origins_.find(fault.keys[0]);
      faults_.push_back((found == origins_.end() ? file_ : found->second) + ": " + fault.keys[0] + ": " +
                        fault.message);
    }
  }

  std::string file_;
  Config config_;
  std::map<std::string, std::string> origins_;  // key: "tiny.yaml:3"
  std::set<std::string> bad_;                   // keys with a fault of their own
  std::vector<std::string> faults_;
};

}  // namespace

Config load_config(const std::filesystem::path& file, const std::vector<ConfigOverride>& overrides) {
  Loader loader;
  loader.load(file, overrides);
  loader.throw_faults();
  return loader.config();
}

std::string resolved_yaml(const std::filesystem::path& file, const std::vector<ConfigOverride>& overrides) {
  Loader loader;
  loader.load(file, overrides);
  loader.throw_faults();
  std::string text, section;
  for (const KeyRow& row : key_table()) {
    const std::string key(row.key);
    const std::size_t dot = key.find('.');
    const std::string in = dot == std::string::npos ? "" : key.substr(0, dot);
    if (!in.empty() && in != section) text += in + ":\n";
    section = in;
    std::string line = (in.empty() ? "" : "  ") + key.substr(dot + 1) + ": " + yaml_value(row, loader.config());
    line.resize(std::max<std::size_t>(line.size(), 40), ' ');
    text += line + "  # " + loader.origin(key) + "\n";
  }
  return text;
}

std::vector<ConfigKey> config_keys() {
  std::vector<ConfigKey> keys;
  for (const KeyRow& row : key_table()) {
    keys.push_back(
        {std::string(row.key), type_of(row), yaml_value(row, Config()), allowed_of(row), std::string(row.help)});
  }
  return keys;
}

}  // namespace drivetrain
