// A YAML document as plain data that remembers its lines. The one door to yaml-cpp; it knows nothing of our keys.
#pragma once
#include <string>
#include <vector>

namespace drivetrain {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  int line = 0;                    // 1-based
  std::string text;                // kScalar
  bool quoted = false;             // kScalar written in quotes: always text
  std::vector<YamlNode> items;     // kList
  std::vector<YamlEntry> entries;  // kMap, in the order of the file, duplicates kept
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlNode value;
};

struct YamlFault {
  int line = 0;  // 0: of the whole document
  std::string message;
};

// Parses one document. A leading byte order mark is accepted. Appends to faults (and returns what could be read) for
// wrong syntax, tabs as indentation, control characters, several documents, or nesting deeper than 16.
YamlNode parse_yaml(const std::string& text, std::vector<YamlFault>& faults);

}  // namespace drivetrain
