// Checkpoints of a run: written by all ranks, atomic, hashed, of logical tensors (Hugging Face names, f32), so that
// any DP x TP can resume.
//
// Layout: checkpoints/step-000200/{rank-00000.safetensors ..., manifest.json, DONE}; checkpoints/latest names the
// newest complete one. Save: all ranks write into checkpoints/.tmp-step-000200, fsync; rank 0 writes the manifest with
// the hash of every file and DONE, fsyncs, renames, then replaces `latest`, then deletes old ones beyond `keep`.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
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

// What a save has just done, in this order. kTensorWritten and kFileSynced happen on every rank that writes, the
// others on rank 0.
enum class SaveStage {
  kFolderMade,
  kTensorWritten,
  kFileSynced,
  kManifestWritten,
  kDoneWritten,
  kRenamed,
  kLatestReplaced,
  kPruned
};
using SaveObserver = std::function<void(SaveStage)>;

class CheckpointFolder {
 public:
  // The observer, if any, is called on the rank on which a stage of save() is reached.
  explicit CheckpointFolder(std::filesystem::path checkpoints, SaveObserver observer = {})
      : folder_(std::move(checkpoints)), observer_(std::move(observer)) {}

  // Collective over the world. `notes` go into the manifest (model config, data fingerprint). Keeps the `keep` newest
  // checkpoints including this one; 0 keeps all. One already there for the same step is replaced. When any rank fails
  // (disk full), all throw its error, what was written is removed, and the checkpoints before stay as they were.
  void save(const TrainState& state, ParamStore& store, const StateTensors& optimizer, Mesh& mesh, std::int64_t keep,
            const std::vector<std::pair<std::string, std::string>>& notes);
  // Newest complete checkpoint, if any; half-written ones are ignored. The one that `latest` names, if it is complete,
  // else the highest step. Complete: DONE is there and fits the manifest, every file has its size. Throws kIo when the
  // folder or a manifest is there but cannot be read. Rank-local, no collective.
  std::optional<std::filesystem::path> newest() const;

 private:
  std::filesystem::path folder_;
  SaveObserver observer_;
};

// Loads values, masters, optimizer state and returns the train state. Verifies hashes and shapes first; throws kData
// naming tensor and both shapes. Collective over the world.
TrainState load_checkpoint(const std::filesystem::path& checkpoint, ParamStore& store, const StateTensors& optimizer,
                           Mesh& mesh);

// The checkpoint meant by a checkpoint folder, a run folder (its newest) or a `checkpoints` folder. Throws kData when
// there is none. Rank-local.
std::filesystem::path find_checkpoint(const std::filesystem::path& run_or_checkpoint);
// The weights in a checkpoint folder, or a run folder's newest, as a source of tensors (names as in Hugging Face).
// Verifies the hashes of all files first. Rank-local.
std::unique_ptr<TensorSource> open_checkpoint_weights(const std::filesystem::path& run_or_checkpoint);

}  // namespace drivetrain
