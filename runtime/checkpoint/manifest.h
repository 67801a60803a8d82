// manifest.json and DONE of a checkpoint: what was saved, which file holds which tensor, and how to tell that all of it
// is there. Moves no tensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/mesh.h"

namespace drivetrain {

struct CheckpointManifest {
  static constexpr int kFormat = 1;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::string xxh3_128;  // hexadecimal
  };

  TrainState state;
  MeshShape mesh;  // that saved it; any other can load it
  std::vector<File> files;
  std::map<std::string, std::string> weights;                           // Hugging Face name -> file
  std::map<std::string, std::map<std::string, std::string>> optimizer;  // kind ("m") -> Hugging Face name -> file
  std::vector<std::pair<std::string, std::string>> notes;
};

// Name of a tensor inside the files: weights under their own, optimizer state with its kind in front ("m.<name>").
std::string stored_name(const std::string& kind, const std::string& name);

// "step-000200"
std::string checkpoint_name(std::int64_t step);
// The step of such a name; -1 for any other.
std::int64_t checkpoint_step(const std::string& name);

// True when the folder holds a manifest, complete or not.
bool is_checkpoint_folder(const std::filesystem::path& folder);
void write_manifest(const std::filesystem::path& checkpoint, const CheckpointManifest& manifest);
// Marks the checkpoint as complete: DONE holds the hash of the manifest.
void write_done(const std::filesystem::path& checkpoint);
// Throws kData when the checkpoint is not complete, its manifest damaged or of an unknown format.
CheckpointManifest read_manifest(const std::filesystem::path& checkpoint);
// DONE fits the manifest and every file is there with its size. A complete one of an unknown format counts, so that it
// is refused when loaded instead of silently passed over. Throws kIo when its files may not be read.
bool is_complete_checkpoint(const std::filesystem::path& checkpoint);
// Throws kData naming the file when its contents do not have the hash of the manifest.
void verify_file(const std::filesystem::path& checkpoint, const CheckpointManifest::File& file);

}  // namespace drivetrain
