// Checkpoints of a run: written by all ranks, atomic, hashed, of logical tensors (Hugging Face names, f32), so that
// any DP x TP can resume.
//
// Layout: checkpoints/step-000200/{rank-00000.safetensors ..., manifest.json, DONE}; checkpoints/latest names the
// newest complete one. Save: all ranks write into checkpoints/.tmp-step-000200, fsync; rank 0 writes the manifest with
// the hash of every file and DONE, fsyncs, renames, then replaces `latest`, then deletes old ones beyond `keep`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/loader.h"
#include "runtime/mesh.h"
#include "runtime/param_store.h"

namespace drivetrain {

struct TrainState {
  std::int64_t step = 0;    // optimizer steps done
  Cursor cursor;            // next data
  std::int64_t tokens = 0;  // trained so far
  double loss_scale = 0;
  std::int64_t loss_scale_good_steps = 0;
  std::uint64_t seed = 0;
  std::int64_t total_steps = 0;  // the schedule was made for; a change on resume is warned of
  std::int64_t last_eval_step = -1;
  std::int64_t adam_step = 0;  // updates applied (skipped ones not counted)
};

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path checkpoints) : folder_(std::move(checkpoints)) {}

  // Collective over the world. `notes` go into the manifest (model config, data fingerprint).
  void save(const TrainState& state, ParamStore& store, const StateTensors& optimizer, Mesh& mesh, std::int64_t keep,
            const std::vector<std::pair<std::string, std::string>>& notes);
  // Newest complete checkpoint, if any; half-written ones are ignored. Rank-local, no collective.
  std::optional<std::filesystem::path> newest() const;

 private:
  std::filesystem::path folder_;
};

// Loads values, masters, optimizer state and returns the train state. Verifies hashes and shapes first; throws kData
// naming tensor and both shapes. Collective over the world.
TrainState load_checkpoint(const std::filesystem::path& checkpoint, ParamStore& store, const StateTensors& optimizer,
                           Mesh& mesh);
// The weights in a checkpoint folder, or a run folder's newest, as a source of tensors (names as in Hugging Face).
std::unique_ptr<TensorSource> open_checkpoint_weights(const std::filesystem::path& run_or_checkpoint);

}  // namespace drivetrain
