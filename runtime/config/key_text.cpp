// How keys and values are written for people and for YAML: types, allowed ranges, values.
#include <charconv>
#include <cmath>
#include <type_traits>

#include "runtime/config/key_table.h"

namespace drivetrain {
namespace {

template <class Number>
std::string number_text(Number value) {
  char buffer[64];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value);
  return {buffer, end.ptr};
}

// Plain YAML text where that is safe, else double quotes.
std::string text_value(const std::string& text) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-";
  const bool plain = !text.empty() && text.find_first_not_of(kSafe) == std::string::npos && text[0] != '-' &&
                     text != "null" && text != "Null" && text != "NULL";
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

template <class Values, class Write>
std::string list_value(const Values& values, const char* open, const char* close, Write write) {
  std::string text = open;
  for (const auto& value : values) text += (text.size() > 1 ? ", " : "") + write(value);
  return text + close;
}

struct TypeName {
  std::string operator()(const std::string*) const { return "text"; }
  std::string operator()(const bool*) const { return "on | off"; }
  std::string operator()(const int*) const { return "integer"; }
  std::string operator()(const std::int64_t*) const { return "integer"; }
  std::string operator()(const std::uint64_t*) const { return "integer"; }
  std::string operator()(const double*) const { return "number"; }
  std::string operator()(const std::vector<std::string>*) const { return "list of text"; }
  std::string operator()(const std::vector<double>*) const { return "two numbers"; }
  std::string operator()(const std::map<std::string, std::string>*) const { return "map"; }
};

struct ValueText {
  const KeyLimits& limits;

  template <class Number>
  std::string of_number(Number value) const {
    const bool word = !limits.choices.empty() && static_cast<double>(value) == limits.word_value;
    return word ? std::string(limits.choices) : number_text(value);
  }
  std::string operator()(const std::string* value) const { return text_value(*value); }
  std::string operator()(const bool* value) const { return *value ? "on" : "off"; }
  std::string operator()(const int* value) const { return of_number(*value); }
  std::string operator()(const std::int64_t* value) const { return of_number(*value); }
  std::string operator()(const std::uint64_t* value) const { return of_number(*value); }
  std::string operator()(const double* value) const { return of_number(*value); }
  std::string operator()(const std::vector<std::string>* value) const {
    return list_value(*value, "[", "]", text_value);
  }
  std::string operator()(const std::vector<double>* value) const {
    return list_value(*value, "[", "]", number_text<double>);
  }
  std::string operator()(const std::map<std::string, std::string>* value) const {
    return list_value(*value, "{", "}",
                      [](const auto& pair) { return text_value(pair.first) + ": " + text_value(pair.second); });
  }
};

std::string range_text(const KeyLimits& limits) {
  const std::string low = limits.low_bound == Bound::kOpen ? "> " : ">= ";
  const std::string high = limits.high_bound == Bound::kOpen ? "< " : "<= ";
  std::string text;
  if (std::isfinite(limits.low)) text = low + number_text(limits.low);
  if (std::isfinite(limits.high)) text += (text.empty() ? "" : " and ") + high + number_text(limits.high);
  return text;
}

}  // namespace

std::vector<std::string> choices_of(const KeyLimits& limits) {
  std::vector<std::string> choices;
  std::string_view rest = limits.choices;
  while (!rest.empty()) {
    const std::size_t bar = rest.find(" | ");
    choices.emplace_back(rest.substr(0, bar));
    rest = bar == std::string_view::npos ? std::string_view() : rest.substr(bar + 3);
  }
  return choices;
}

std::string type_of(const KeyRow& row) {
  Config config;
  return std::visit(TypeName{}, row.slot(config));
}

std::string allowed_of(const KeyRow& row) {
  const std::string range = range_text(row.limits);
  const std::string choices(row.limits.choices);
  return range + (range.empty() || choices.empty() ? "" : " | ") + choices;
}

std::string yaml_value(const KeyRow& row, const Config& config) {
  Config copy = config;
  return std::visit(ValueText{row.limits}, row.slot(copy));
}

}  // namespace drivetrain
