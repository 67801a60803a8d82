// The declarative table of every configuration key: where it is stored, what it accepts, what it means. Parsing,
// validation, `--set`, the resolved file and docs/config.md are all views of it. It does not parse.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/config/config.h"

namespace drivetrain {

using KeySlot = std::variant<std::string*, bool*, int*, std::int64_t*, std::uint64_t*, double*,
                             std::vector<std::string>*, std::vector<double>*, std::map<std::string, std::string>*>;

enum class Bound { kClosed, kOpen };

struct KeyLimits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  Bound low_bound = Bound::kClosed, high_bound = Bound::kClosed;
  std::string_view choices = {};  // "a | b | c" for text; for a number the words that stand for word_value
  double word_value = 0;
};

struct KeyRow {
  std::string_view key;  // "optimizer.lr"
  KeySlot (*slot)(Config&);
  KeyLimits limits;
  std::string_view help;
};

std::span<const KeyRow> key_table();
const KeyRow* find_key(std::string_view key);
bool is_section(std::string_view key);

std::vector<std::string> choices_of(const KeyLimits& limits);
std::string type_of(const KeyRow& row);     // "integer", "number", "on | off", "text", "list of text", ...
std::string allowed_of(const KeyRow& row);  // ">= 1", "a | b", "" when everything goes
// The value in YAML, e.g. 1e-08, "[a, \"b c\"]"; loads back to the same value.
std::string yaml_value(const KeyRow& row, const Config& config);

}  // namespace drivetrain
