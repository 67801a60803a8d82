#include "launcher/checkpoint_model.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "kernels/error.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/log.h"

namespace drivetrain {

void check_checkpoint_model(const std::filesystem::path& checkpoint, const ModelConfig& model) {
  static const std::set<std::string> kFree = {"attention_dropout", "attn_pdrop",        "embd_pdrop",
                                              "resid_pdrop",       "initializer_range", "torch_dtype"};
  const CheckpointManifest manifest = read_manifest(checkpoint);
  std::string saved_text;
  for (const auto& [key, value] : manifest.notes)
    if (key == "config.json") saved_text = value;
  if (saved_text.empty()) return;
  const auto saved = nlohmann::json::parse(saved_text, nullptr, false);
  const auto ours = nlohmann::json::parse(hf_config_json(model, "float32"));
  if (!saved.is_object())
    throw Error(ErrorKind::kData, checkpoint.string() + ": the config.json in its manifest is damaged");
  std::string faults;
  for (const auto& [key, value] : ours.items()) {
    if (kFree.contains(key)) continue;
    const std::string before = saved.contains(key) ? saved[key].dump() : "none";
    if (before != value.dump())
      faults += "\n  " + key + ": " + before + " in the checkpoint, " + value.dump() + " now";
  }
  if (!faults.empty())
    throw Error(ErrorKind::kConfig, checkpoint.string() + " was made by another model:" + faults +
                                        "\nmake the configuration agree, or start another run with run.name");
}

void warn_of_incomplete(const std::filesystem::path& checkpoints, const std::filesystem::path& chosen) {
  const std::int64_t step = chosen.empty() ? -1 : checkpoint_step(chosen.filename().string());
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoints, ignored))
    if (checkpoint_step(entry.path().filename().string()) > step && !is_complete_checkpoint(entry.path()))
      log_warn(entry.path().string() + " is not complete and is passed over; " +
               (chosen.empty() ? std::string("there is no complete one, training starts anew")
                               : "continuing from " + chosen.filename().string()));
}

}  // namespace drivetrain
