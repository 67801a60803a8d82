#include "runtime/config/store_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "runtime/config/nearest.h"

namespace drivetrain {
namespace {

using Kind = YamlNode::Kind;

std::string shown(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kList:
      return "a list";
    case Kind::kMap:
      return "a map";
    case Kind::kScalar:
      break;
  }
  const std::string text = node.text.size() > 60 ? node.text.substr(0, 57) + "..." : node.text;
  return node.quoted ? "the text \"" + text + "\"" : "'" + text + "'";
}

bool inside(double value, const KeyLimits& limits) {
  const bool low = limits.low_bound == Bound::kOpen ? value > limits.low : value >= limits.low;
  const bool high = limits.high_bound == Bound::kOpen ? value < limits.high : value <= limits.high;
  return low && high;
}

bool has_leading_zero(const std::string& text) {
  const std::size_t first = text.find_first_not_of("+-");
  return first != std::string::npos && text[first] == '0' && first + 1 < text.size() &&
         std::isdigit(static_cast<unsigned char>(text[first + 1]));
}

// Reads one number of type Number; "" when it did.
template <class Number>
std::string read_number(const KeyRow& row, const YamlNode& node, Number& out) {
  const std::string allowed = allowed_of(row).empty() ? "" : " (" + allowed_of(row) + ")";
  const std::string wanted = std::is_floating_point_v<Number> ? "a number" : "a whole number";
  if (node.kind != Kind::kScalar || node.quoted) return "is " + shown(node) + ", wants " + wanted + allowed;
  if (!row.limits.choices.empty() && node.text == row.limits.choices) {
    out = static_cast<Number>(row.limits.word_value);
    return "";
  }
  const char* first = node.text.data();
  const char* last = first + node.text.size();
  if (node.text.starts_with("+")) ++first;
  Number value{};
  const auto [end, status] = std::from_chars(first, last, value);
  if (status == std::errc::result_out_of_range) return shown(node) + " is too large or too small to hold" + allowed;
  bool whole = status == std::errc() && end == last && !has_leading_zero(node.text);
  if constexpr (std::is_floating_point_v<Number>) whole = whole && std::isfinite(value);
  if (!whole) return shown(node) + " is not " + wanted + allowed;
  if (!inside(static_cast<double>(value), row.limits)) return shown(node) + " is outside the allowed range" + allowed;
  out = value;
  return "";
}

std::string read_text(const YamlNode& node, std::string& out) {
  if (node.kind != Kind::kScalar) return "is " + shown(node) + ", wants text (\"\" is the empty text)";
  out = node.text;
  return "";
}

struct Store {
  const KeyRow& row;
  const YamlNode& node;

  std::string operator()(std::string* out) const {
    std::string value;
    if (std::string fault = read_text(node, value); !fault.empty()) return fault;
    const std::vector<std::string> choices = choices_of(row.limits);
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
      const std::string near = nearest_word(value, choices);
      return shown(node) + " is not one of " + std::string(row.limits.choices) +
             (near.empty() ? "" : "; did you mean '" + near + "'?");
    }
    *out = value;
    return "";
  }

  std::string operator()(bool* out) const {
    const bool word = node.kind == Kind::kScalar && !node.quoted;
    const bool on = word && (node.text == "on" || node.text == "true" || node.text == "yes");
    const bool off = word && (node.text == "off" || node.text == "false" || node.text == "no");
    if (!on && !off) return "is " + shown(node) + ", wants on | off";
    *out = on;
    return "";
  }

  std::string operator()(int* out) const { return read_number(row, node, *out); }
  std::string operator()(std::int64_t* out) const { return read_number(row, node, *out); }
  std::string operator()(std::uint64_t* out) const { return read_number(row, node, *out); }
  std::string operator()(double* out) const { return read_number(row, node, *out); }

  std::string operator()(std::vector<std::string>* out) const {
    std::vector<std::string> values(1);
    if (node.kind == Kind::kScalar) {
      values[0] = node.text;
    } else if (node.kind != Kind::kList) {
      return "is " + shown(node) + ", wants a list of texts such as [a.txt, b.txt]";
    } else {
      values.resize(node.items.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::string fault = read_text(node.items[i], values[i]);
        if (!fault.empty()) return "item " + std::to_string(i + 1) + " " + fault;
      }
    }
    for (const std::string& value : values) {
      if (value.empty()) return "holds an empty text; wants names of files";
    }
    *out = values;
    return "";
  }

  std::string operator()(std::vector<double>* out) const {
    const std::size_t count = out->size();
    if (node.kind != Kind::kList || node.items.size() != count) {
      const std::string got =
          node.kind == Kind::kList ? "a list of " + std::to_string(node.items.size()) : shown(node);
      return "is " + got + ", wants a list of " + std::to_string(count) + " numbers (each " + allowed_of(row) + ")";
    }
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::string fault = read_number(row, node.items[i], values[i]);
      if (!fault.empty()) return "item " + std::to_string(i + 1) + " " + fault;
    }
    *out = values;
    return "";
  }

  std::string operator()(std::map<std::string, std::string>* out) const {
    if (node.kind != Kind::kMap) return "is " + shown(node) + ", wants a map such as {layers: 2}";
    for (const YamlEntry& entry : node.entries) {
      std::string value;
      std::string fault = read_text(entry.value, value);
      if (!fault.empty()) return entry.key + " " + fault;
      (*out)[entry.key] = value;
    }
    return "";
  }
};

}  // namespace

std::string store_value(const KeyRow& row, const YamlNode& node, Config& config) {
  return std::visit(Store{row, node}, row.slot(config));
}

}  // namespace drivetrain
