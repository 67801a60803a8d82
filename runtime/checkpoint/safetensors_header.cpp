#include "runtime/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "kernels/error.h"

namespace drivetrain {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::pair<std::string_view, FileDType>, 10> kDTypeNames{{{"F64", FileDType::kF64},
                                                                              {"F32", FileDType::kF32},
                                                                              {"F16", FileDType::kF16},
                                                                              {"BF16", FileDType::kBF16},
                                                                              {"I64", FileDType::kI64},
                                                                              {"I32", FileDType::kI32},
                                                                              {"I16", FileDType::kI16},
                                                                              {"I8", FileDType::kI8},
                                                                              {"U8", FileDType::kU8},
                                                                              {"BOOL", FileDType::kBool}}};
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kMaxTensorDims = 64;

// Receives the events of the JSON parser, so that no document is built: memory stays in proportion to what is valid,
// and the first thing that does not belong ends the parse.
class HeaderHandler final : public nlohmann::json_sax<Json> {
 public:
  HeaderHandler(SafetensorsHeader& header, const std::string& file) : header_(header), file_(file) {}

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a boolean"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { refuse("a number that is no 64-bit integer"); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse("a too large dimension");
      if (shape_->size() == kMaxTensorDims) refuse("more than 64 dimensions");
      shape_->push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets && offsets_->size() < 2) {
      offsets_->push_back(value);
    } else {
      refuse("an integer");
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[field_] = value;
    } else if (place_ == Place::kTensor && field_ == "dtype") {
      const auto* known = std::find_if(kDTypeNames.begin(), kDTypeNames.end(),
                                       [&](const auto& entry) { return entry.first == value; });
      if (known == kDTypeNames.end()) refuse("the dtype " + in_quotes(value) + ", which is not supported,");
      dtype_ = known->second;
    } else {
      refuse("a string");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = tensor_ == kMetadataKey ? Place::kMetadata : Place::kTensor;
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
      fields_.clear();
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::kTop) {
      tensor_ = name;
      field_.clear();
      if (!names_.insert(name).second) fail("the name " + in_quotes(name) + " appears twice in the header");
    } else {
      field_ = name;
      if (!fields_.insert(name).second) refuse("the field twice");
      if (place_ == Place::kTensor && name != "dtype" && name != "shape" && name != "data_offsets")
        refuse("a field that the format does not have");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) finish_tensor();
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && field_ == "shape") {
      place_ = Place::kShape;
      shape_.emplace();
    } else if (place_ == Place::kTensor && field_ == "data_offsets") {
      place_ = Place::kOffsets;
      offsets_.emplace();
    } else {
      refuse("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    fail("the header is not valid JSON at byte " + std::to_string(position) + " (" + error.what() + ")");
  }

 private:
  enum class Place { kOutside, kTop, kTensor, kShape, kOffsets, kMetadata };

  [[noreturn]] void fail(const std::string& what) const { throw Error(ErrorKind::kData, file_ + ": " + what); }
  [[noreturn]] void refuse(const std::string& what) const {
    std::string text = "the header has " + what;
    if (!tensor_.empty() || place_ != Place::kOutside) text += " at " + in_quotes(tensor_);
    if (!field_.empty()) text += ", field " + in_quotes(field_);
    fail(text);
  }

  void finish_tensor() {
    const std::string what = "tensor " + in_quotes(tensor_);
    if (!dtype_) fail(what + " has no dtype");
    if (!shape_) fail(what + " has no shape");
    if (!offsets_ || offsets_->size() != 2) fail(what + " has no data_offsets [begin, end]");
    header_.tensors[tensor_] = {*dtype_, *shape_, offsets_->at(0), offsets_->at(1)};
  }

  SafetensorsHeader& header_;
  const std::string& file_;
  Place place_ = Place::kOutside;
  std::string tensor_, field_;
  std::set<std::string> names_, fields_;
  std::optional<FileDType> dtype_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::uint64_t>> offsets_;
};

// Ranges in the order of the file must follow each other from the first byte of data to the last.
void check_ranges(const SafetensorsHeader& header, std::uint64_t data_bytes, const std::string& file) {
  std::vector<std::pair<const std::string*, const TensorEntry*>> order;
  for (const auto& [name, entry] : header.tensors) {
    const std::string what = file + ": tensor " + in_quotes(name);
    const std::uint64_t bytes = tensor_bytes(entry.dtype, entry.shape, what);
    if (entry.end < entry.begin || entry.end - entry.begin != bytes)
      throw Error(ErrorKind::kData, what + " has shape " + shape_text(entry.shape) + ", which takes " +
                                        std::to_string(bytes) + " bytes, but data_offsets [" +
                                        std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]");
    order.emplace_back(&name, &entry);
  }
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->end) < std::pair(b.second->begin, b.second->end);
  });
  std::uint64_t reached = 0;
  for (const auto& [name, entry] : order) {
    if (entry->begin != reached)
      throw Error(ErrorKind::kData, file + ": tensor " + in_quotes(*name) + " begins at byte " +
                                        std::to_string(entry->begin) +
                                        " of the data, but the tensors before it end at " + std::to_string(reached) +
                                        " (tensors may not overlap or leave holes)");
    reached = entry->end;
  }
  if (reached != data_bytes)
    throw Error(ErrorKind::kData, file + ": the header describes " + std::to_string(reached) +
                                      " bytes of tensors, but the file has " + std::to_string(data_bytes) +
                                      (reached > data_bytes ? ": it is cut off (incomplete download?)"
                                                            : ": there are bytes that belong to no tensor"));
}

std::string_view dtype_name(FileDType dtype) {
  return std::find_if(kDTypeNames.begin(), kDTypeNames.end(), [&](const auto& e) { return e.second == dtype; })
      ->first;
}

}  // namespace

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kLongest = 200;
  std::string out = "'";
  for (const char c : name.substr(0, kLongest)) out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return out += name.size() > kLongest ? "...'" : "'";
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out.append(i > 0 ? ", " : "").append(std::to_string(shape[i]));
  return out += ']';
}

std::uint64_t tensor_bytes(FileDType dtype, const std::vector<std::int64_t>& shape, const std::string& what) {
  std::int64_t bytes = static_cast<std::int64_t>(size_of(dtype));
  for (const std::int64_t dim : shape) {
    if (dim < 0) throw Error(ErrorKind::kData, what + " has a negative dimension in its shape " + shape_text(shape));
    if (__builtin_mul_overflow(bytes, dim, &bytes))
      throw Error(ErrorKind::kData, what + " has the shape " + shape_text(shape) + ", whose size overflows 64 bits");
  }
  return static_cast<std::uint64_t>(bytes);
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t file_bytes, const std::string& file) {
  // The JSON library skips a byte order mark and takes a NUL for the end; the format allows neither.
  if (text.empty() || text.front() != '{')
    throw Error(ErrorKind::kData, file + ": the header does not begin with '{': this is no safetensors file");
  if (text.find('\0') != std::string_view::npos)
    throw Error(ErrorKind::kData, file + ": the header contains a NUL byte");
  SafetensorsHeader header;
  HeaderHandler handler(header, file);
  Json::sax_parse(text.begin(), text.end(), &handler);
  const std::uint64_t data_begin = 8 + text.size();
  check_ranges(header, file_bytes - data_begin, file);
  for (auto& [name, entry] : header.tensors) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

std::string compose_safetensors_header(const std::vector<SafetensorsWriter::Declared>& tensors,
                                       const std::map<std::string, std::string>& metadata) {
  constexpr std::size_t kDataAlignment = 64;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!metadata.empty()) json[std::string(kMetadataKey)] = metadata;
  std::uint64_t offset = 0;
  std::set<std::string_view> names{kMetadataKey};
  std::string text = json.dump();
  text.pop_back();
  for (const auto& t : tensors) {
    if (!names.insert(t.name).second)
      throw Error(ErrorKind::kLogic, "two tensors named " + in_quotes(t.name) + " in one safetensors file");
    const std::uint64_t bytes = tensor_bytes(t.dtype, t.shape, "tensor " + in_quotes(t.name));
    const nlohmann::ordered_json entry{
        {"dtype", dtype_name(t.dtype)}, {"shape", t.shape}, {"data_offsets", {offset, offset + bytes}}};
    if (text.size() > 1) text += ',';
    text.append(Json(t.name).dump()).append(":").append(entry.dump());
    offset += bytes;
  }
  text += "}";
  text.append((kDataAlignment - (8 + text.size()) % kDataAlignment) % kDataAlignment, ' ');
  if (text.size() > kMaxHeaderBytes)
    throw Error(ErrorKind::kData, "a safetensors header of " + std::to_string(text.size()) +
                                      " bytes exceeds the limit of " + std::to_string(kMaxHeaderBytes));
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  return out + text;
}

}  // namespace drivetrain
