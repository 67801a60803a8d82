#include "runtime/config/yaml_tree.h"

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <sstream>

namespace drivetrain {
namespace {

constexpr int kDeepest = 16;
constexpr int kMostNodes = 100000;  // stops aliases of aliases from growing without end

int line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 0 : mark.line + 1;
}

class Converter {
 public:
  explicit Converter(std::vector<YamlFault>& faults) : faults_(faults) {}

  YamlNode convert(const YAML::Node& from, int depth) {
    YamlNode to;
    to.line = line_of(from.Mark());
    if (++nodes_ > kMostNodes || depth > kDeepest) {
      if (!too_big_) faults_.push_back({to.line, "nested deeper than 16 levels or with too many aliases"});
      too_big_ = true;
      return to;
    }
    if (from.IsScalar()) {
      to.kind = YamlNode::Kind::kScalar;
      to.text = from.Scalar();
      to.quoted = from.Tag() == "!";
    } else if (from.IsSequence()) {
      to.kind = YamlNode::Kind::kList;
      for (const YAML::Node& item : from) to.items.push_back(convert(item, depth + 1));
    } else if (from.IsMap()) {
      to.kind = YamlNode::Kind::kMap;
      for (const auto& pair : from) add_entry(to, pair.first, pair.second, depth);
    }
    return to;
  }

 private:
  void add_entry(YamlNode& to, const YAML::Node& key, const YAML::Node& value, int depth) {
    const int line = line_of(key.Mark());
    if (key.IsScalar()) {
      to.entries.push_back({key.Scalar(), line, convert(value, depth + 1)});
    } else {
      faults_.push_back({line, "a key must be a word"});
    }
  }

  std::vector<YamlFault>& faults_;
  int nodes_ = 0;
  bool too_big_ = false;
};

void check_characters(const std::string& text, std::vector<YamlFault>& faults) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    const std::size_t tab = line.find('\t');
    if (first != std::string::npos && line[first] != '#' && tab < first) {
      faults.push_back({number, "a tab in the indentation; YAML wants spaces"});
    }
    for (const char c : line) {
      const auto byte = static_cast<unsigned char>(c);
      if ((byte < 0x20 && c != '\t' && c != '\r') || byte == 0x7f) {
        faults.push_back({number, "a control character (byte " + std::to_string(byte) + "); is this a text file?"});
        break;
      }
    }
  }
}

}  // namespace

YamlNode parse_yaml(const std::string& text, std::vector<YamlFault>& faults) {
  const std::size_t faults_before = faults.size();
  check_characters(text, faults);
  if (faults.size() != faults_before) return {};
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.empty()) return {};
    if (documents.size() > 1) {
      faults.push_back({line_of(documents[1].Mark()), "a second document ('---'); one file holds one configuration"});
    }
    return Converter(faults).convert(documents[0], 0);
  } catch (const YAML::Exception& error) {
    faults.push_back({line_of(error.mark), "not valid YAML: " + error.msg});
    return {};
  }
}

}  // namespace drivetrain
