#include "runtime/checkpoint/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "kernels/error.h"
#include "runtime/checkpoint/file_io.h"
#include "runtime/checkpoint/hash.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/data/mapped_file.h"

namespace drivetrain {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kManifestFile = "manifest.json";
constexpr const char* kDoneFile = "DONE";
constexpr std::uint64_t kMaxManifestBytes = 256u << 20;
constexpr std::string_view kStepPrefix = "step-";

// Doubles go through text that gives back the same bits, whatever the JSON library does with infinities.
std::string exact_text(double value) {
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

double exact_double(const std::string& text) {
  double value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    throw Error(ErrorKind::kData, in_quotes(text) + " is no number");
  return value;
}

Json to_json(const TrainState& s) {
  return {{"step", s.step},
          {"epoch", s.cursor.epoch},
          {"position", s.cursor.position},
          {"tokens", s.tokens},
          {"loss_scale", exact_text(s.loss_scale)},
          {"loss_scale_good_steps", s.loss_scale_good_steps},
          {"seed", s.seed},
          {"total_steps", s.total_steps},
          {"last_eval_step", s.last_eval_step},
          {"adam_step", s.adam_step}};
}

TrainState state_of(const Json& json) {
  TrainState s;
  json.at("step").get_to(s.step);
  json.at("epoch").get_to(s.cursor.epoch);
  json.at("position").get_to(s.cursor.position);
  json.at("tokens").get_to(s.tokens);
  s.loss_scale = exact_double(json.at("loss_scale").get<std::string>());
  json.at("loss_scale_good_steps").get_to(s.loss_scale_good_steps);
  json.at("seed").get_to(s.seed);
  json.at("total_steps").get_to(s.total_steps);
  json.at("last_eval_step").get_to(s.last_eval_step);
  json.at("adam_step").get_to(s.adam_step);
  return s;
}

CheckpointManifest manifest_of(const Json& json) {
  CheckpointManifest m;
  m.state = state_of(json.at("state"));
  json.at("mesh").at("dp").get_to(m.mesh.dp);
  json.at("mesh").at("tp").get_to(m.mesh.tp);
  for (const Json& file : json.at("files")) {
    m.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<std::uint64_t>(),
                       file.at("xxh3_128").get<std::string>()});
    if (!is_plain_file_name(m.files.back().name))
      throw Error(ErrorKind::kData, "the file name " + in_quotes(m.files.back().name) + " leaves the folder");
  }
  json.at("weights").get_to(m.weights);
  json.at("optimizer").get_to(m.optimizer);
  for (const auto& [key, value] : json.at("notes").items()) m.notes.emplace_back(key, value.get<std::string>());
  return m;
}

std::string hash_of(std::string_view text) {
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(text)));
  return hasher.hex();
}

// The manifest's text; throws kData when DONE is missing or belongs to another text.
std::string read_finished_text(const fs::path& checkpoint) {
  std::error_code error;
  if (!fs::exists(checkpoint / kDoneFile, error) && !error)
    throw Error(ErrorKind::kData, checkpoint.string() + " is no complete checkpoint: it has no file " + kDoneFile);
  const std::string done = read_text_file(checkpoint / kDoneFile, 4096);
  std::string text = read_text_file(checkpoint / kManifestFile, kMaxManifestBytes);
  if (done != hash_of(text) + "\n")
    throw Error(ErrorKind::kData, (checkpoint / kManifestFile).string() + " is damaged: its XXH3-128 is " +
                                      hash_of(text) + ", the file " + kDoneFile + " says otherwise");
  return text;
}

}  // namespace

std::string stored_name(const std::string& kind, const std::string& name) {
  return kind + "." + name;
}

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 6) digits.insert(0, 6 - digits.size(), '0');
  return std::string(kStepPrefix) + digits;
}

std::int64_t checkpoint_step(const std::string& name) {
  std::int64_t step = -1;
  if (!name.starts_with(kStepPrefix)) return -1;
  const char* end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kStepPrefix.size(), end, step);
  return parsed.ec == std::errc() && parsed.ptr == end && checkpoint_name(step) == name ? step : -1;
}

bool is_checkpoint_folder(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kManifestFile, error);
}

void write_manifest(const fs::path& checkpoint, const CheckpointManifest& manifest) {
  Json files = Json::array(), notes = Json::object();
  for (const auto& f : manifest.files)
    files.push_back({{"name", f.name}, {"bytes", f.bytes}, {"xxh3_128", f.xxh3_128}});
  for (const auto& [key, value] : manifest.notes) notes[key] = value;
  const Json json{{"format", CheckpointManifest::kFormat},
                  {"state", to_json(manifest.state)},
                  {"mesh", {{"dp", manifest.mesh.dp}, {"tp", manifest.mesh.tp}}},
                  {"files", files},
                  {"weights", manifest.weights},
                  {"optimizer", manifest.optimizer},
                  {"notes", notes}};
  write_text_file(checkpoint / kManifestFile, json.dump(1) + "\n");
}

void write_done(const fs::path& checkpoint) {
  write_text_file(checkpoint / kDoneFile,
                  hash_of(read_text_file(checkpoint / kManifestFile, kMaxManifestBytes)) + "\n");
}

CheckpointManifest read_manifest(const fs::path& checkpoint) {
  const std::string file = (checkpoint / kManifestFile).string();
  const std::string text = read_finished_text(checkpoint);
  try {
    const Json json = Json::parse(text);
    const int format = json.at("format").get<int>();
    if (format != CheckpointManifest::kFormat)
      throw Error(ErrorKind::kData, "format " + std::to_string(format) +
                                        " is not known to this version, which reads " +
                                        std::to_string(CheckpointManifest::kFormat));
    return manifest_of(json);
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::kData, file + " is no manifest of a checkpoint: " + e.what());
  } catch (const Error& e) {
    throw Error(e.kind(), file + ": " + e.what());
  }
}

bool is_complete_checkpoint(const fs::path& checkpoint) {
  try {
    const Json json = Json::parse(read_finished_text(checkpoint));
    if (json.at("format") != CheckpointManifest::kFormat) return true;
    const CheckpointManifest manifest = manifest_of(json);
    return std::all_of(manifest.files.begin(), manifest.files.end(), [&](const CheckpointManifest::File& f) {
      std::error_code error;
      return fs::file_size(checkpoint / f.name, error) == f.bytes && !error;
    });
  } catch (const nlohmann::json::exception&) {
    return false;
  } catch (const Error& e) {
    // What the file system refuses may be a good checkpoint: passing over it would start the run from scratch.
    if (e.kind() == ErrorKind::kIo) throw;
    return false;
  }
}

void verify_file(const fs::path& checkpoint, const CheckpointManifest::File& file) {
  constexpr std::size_t kPortion = std::size_t{8} << 20;
  MappedFile mapped(checkpoint / file.name);
  Hasher hasher;
  for (std::size_t at = 0; at < mapped.bytes().size(); at += kPortion) {
    hasher.add(std::as_bytes(std::span(mapped.bytes().substr(at, kPortion))));
    mapped.release_before(at);
  }
  if (mapped.bytes().size() != file.bytes || hasher.hex() != file.xxh3_128)
    throw Error(ErrorKind::kData, (checkpoint / file.name).string() + " is damaged: it has " +
                                      std::to_string(mapped.bytes().size()) + " bytes with XXH3-128 " + hasher.hex() +
                                      ", the manifest says " + std::to_string(file.bytes) + " with " + file.xxh3_128 +
                                      "; remove " + checkpoint.string() + " to resume from the checkpoint before it");
}

}  // namespace drivetrain
