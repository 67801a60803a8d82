// drivetrain export: a checkpoint as a Hugging Face folder.
#include <cstdio>
#include <fstream>
#include <vector>

#include "launcher/commands.h"
#include "launcher/options.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

struct ExportType {
  const char* word;
  const char* torch_dtype;
  FileDType dtype;
};
constexpr ExportType kTypes[] = {{"bf16", "bfloat16", FileDType::kBF16},
                                 {"fp16", "float16", FileDType::kF16},
                                 {"fp32", "float32", FileDType::kF32}};

const ExportType& export_type(const std::string& word) {
  for (const ExportType& t : kTypes)
    if (word == t.word) return t;
  throw Error(ErrorKind::kUsage, "--dtype = " + word + ": bf16, fp16 or fp32 is needed");
}

std::string note(const CheckpointManifest& manifest, const std::string& key) {
  for (const auto& [name, value] : manifest.notes)
    if (name == key) return value;
  throw Error(ErrorKind::kData,
              "the checkpoint's manifest has no note \"" + key + "\"; it was not written by a training run");
}

template <class T>
void append_as(SafetensorsWriter& writer, std::span<const float> values) {
  std::vector<T> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = T(values[i]);
  writer.append(std::as_bytes(std::span(out)));
}

// Streams every weight, so memory stays small whatever the model's size.
void write_weights(const TensorSource& source, const fs::path& file, FileDType dtype) {
  std::vector<SafetensorsWriter::Declared> declared;
  for (const std::string& name : source.names()) declared.push_back({name, dtype, source.find(name)->shape});
  SafetensorsWriter writer(file, declared, {{"format", "pt"}});
  std::vector<float> chunk;
  for (const auto& tensor : declared) {
    constexpr std::int64_t kChunk = 1 << 22;
    const std::int64_t count = source.find(tensor.name)->count();
    for (std::int64_t at = 0; at < count; at += kChunk) {
      chunk.resize(static_cast<std::size_t>(std::min(kChunk, count - at)));
      source.read(tensor.name, at, chunk);
      if (dtype == FileDType::kBF16)
        append_as<bf16>(writer, chunk);
      else if (dtype == FileDType::kF16)
        append_as<f16>(writer, chunk);
      else
        append_as<float>(writer, chunk);
    }
  }
  writer.finish();
}

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc | std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error(ErrorKind::kIo, file.string() + ": cannot be written");
}

// The training dtype of config.json is replaced by the exported one.
std::string with_dtype(std::string config, const char* torch_dtype) {
  const std::string key = "\"torch_dtype\": \"";
  const auto begin = config.find(key);
  if (begin == std::string::npos) return config;
  const auto end = config.find('"', begin + key.size());
  return config.replace(begin + key.size(), end - begin - key.size(), torch_dtype);
}

void copy_tokenizer(const std::string& from, const fs::path& out) {
  if (from == "bytes") return;
  const fs::path folder = fs::is_directory(from) ? fs::path(from) : fs::path(from).parent_path();
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json"})
    if (fs::exists(folder / name)) fs::copy_file(folder / name, out / name, fs::copy_options::overwrite_existing);
}

}  // namespace

int cmd_export(Arguments arguments) {
  namespace po = boost::program_options;
  OptionList options("options");
  options.add_options()("dtype", po::value<std::string>()->default_value("bf16"), "bf16 | fp16 | fp32");
  const Usage usage{
      "export RUN_OR_CHECKPOINT OUT [options]",
      "Writes the weights of a run's newest checkpoint, or of the checkpoint named, as a Hugging Face folder: "
      "config.json, model.safetensors and the tokenizer the run used. OUT must not exist or be empty.",
      "  drivetrain export runs/smollm2-135m models/SmolLM2-135M-tuned\n"
      "  drivetrain export runs/quickstart/checkpoints/step-000060 out --dtype fp32\n"};
  const auto values = parse_options(arguments, usage, options, {"source", "out"});
  if (!values) return 0;
  if (!values->count("source") || !values->count("out"))
    throw Error(ErrorKind::kUsage, "export wants two paths: RUN_OR_CHECKPOINT and OUT");
  const ExportType& type = export_type((*values)["dtype"].as<std::string>());
  const fs::path checkpoint = find_checkpoint((*values)["source"].as<std::string>());
  const fs::path out = (*values)["out"].as<std::string>();
  if (fs::exists(out) && (!fs::is_directory(out) || !fs::is_empty(out)))
    throw Error(ErrorKind::kUsage, out.string() + " exists and is not an empty folder; name another");

  const CheckpointManifest manifest = read_manifest(checkpoint);
  const auto weights = open_checkpoint_weights(checkpoint);
  const fs::path temporary = fs::path(out.string() + ".partial");
  fs::remove_all(temporary);
  fs::create_directories(temporary);
  try {
    write_text(temporary / "config.json", with_dtype(note(manifest, "config.json"), type.torch_dtype));
    write_weights(*weights, temporary / "model.safetensors", type.dtype);
    copy_tokenizer(note(manifest, "tokenizer"), temporary);
    fs::remove(out);
    fs::rename(temporary, out);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  std::printf("%s, step %lld -> %s (%s)\n", checkpoint.c_str(), static_cast<long long>(manifest.state.step),
              out.c_str(), type.word);
  return 0;
}

}  // namespace drivetrain
