#include "runtime/data/jsonl_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/error.h"

namespace drivetrain {
namespace {

using nlohmann::json;

bool blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\v\f") == std::string_view::npos;
}

// What the parser said, without its own prefix and its count of lines (it saw one line only).
std::string reason_of(const json::exception& e) {
  std::string what = e.what();
  const std::size_t colon = what.find(": ");
  if (colon != std::string::npos) what.erase(0, colon + 2);
  constexpr std::size_t kLongest = 160;
  if (what.size() > kLongest) what = what.substr(0, kLongest) + "...";
  return what;
}

std::string keys_of(const json& object) {
  std::string keys;
  int shown = 0;
  for (const auto& [key, value] : object.items()) {
    if (++shown > 8) return keys + ", ...";
    keys += (keys.empty() ? "" : ", ") + key;
  }
  return keys.empty() ? "none" : keys;
}

// The text of a record; on a bad one, empty JSON text stays and `fault` says why.
std::string text_of_record(std::string_view line, std::string& fault) {
  json record;
  try {
    record = json::parse(line);
  } catch (const json::parse_error& e) {
    fault = "column " + std::to_string(e.byte) + ": not valid JSON: " + reason_of(e);
    return {};
  } catch (const json::exception& e) {  // a number beyond every range
    fault = "not valid JSON: " + reason_of(e);
    return {};
  }
  if (!record.is_object()) {
    fault = std::string("the record is JSON of type ") + record.type_name() +
            "; each line must be an object like {\"text\": \"...\"}";
    return {};
  }
  const auto found = record.find("text");
  if (found == record.end()) {
    fault = "no field \"text\" (fields: " + keys_of(record) + ")";
    return {};
  }
  if (!found->is_string()) {
    fault = std::string("\"text\" is of type ") + found->type_name() + ", must be a string";
    return {};
  }
  return std::move(found->get_ref<std::string&>());
}

}  // namespace

std::string_view strip_byte_order_mark(std::string_view bytes, const std::filesystem::path& path) {
  using namespace std::string_view_literals;
  if (bytes.starts_with("\xEF\xBB\xBF"sv)) return bytes.substr(3);
  for (const std::string_view mark : {"\xFF\xFE"sv, "\xFE\xFF"sv, "\x00\x00\xFE\xFF"sv}) {
    if (bytes.starts_with(mark)) {
      throw Error(ErrorKind::kData, path.string() + ": the file is UTF-16 or UTF-32; convert it to UTF-8");
    }
  }
  return bytes;
}

void read_jsonl(MappedFile& file, const std::filesystem::path& path, OnBadRecord on_bad, const JsonlSink& sink) {
  const std::string_view bytes = strip_byte_order_mark(file.bytes(), path);
  const std::size_t mark = file.bytes().size() - bytes.size();
  std::size_t begin = 0;
  for (std::int64_t line = 1; begin < bytes.size(); ++line) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view text = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (blank(text)) continue;
    std::string fault;
    const std::string document = text_of_record(text, fault);
    if (fault.empty()) {
      sink.record(document, line);
    } else if (on_bad == OnBadRecord::kStop) {
      throw Error(ErrorKind::kData, path.string() + ":" + std::to_string(line) + ": " + fault +
                                        " (data.on_error: skip passes over bad records)");
    } else {
      sink.skipped(line);
    }
    file.release_before(mark + std::min(begin, bytes.size()));
  }
}

}  // namespace drivetrain
