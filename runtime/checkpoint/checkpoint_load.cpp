#include <algorithm>
#include <functional>

#include "kernels/error.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/named_tensors.h"
#include "runtime/checkpoint/param_io.h"
#include "runtime/checkpoint/safetensors_header.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> paths_of(const fs::path& checkpoint, const CheckpointManifest& manifest) {
  std::vector<fs::path> out;
  for (const CheckpointManifest::File& file : manifest.files) out.push_back(checkpoint / file.name);
  return out;
}

// The tensors of the weights (kind "") or of one kind of optimizer state, under their Hugging Face names.
std::unique_ptr<TensorSource> open_kind(const fs::path& checkpoint, const CheckpointManifest& manifest,
                                        const std::string& wanted) {
  std::map<std::string, std::string> rename;
  for (const auto& [name, file] : manifest.weights) rename[name] = wanted.empty() ? name : "";
  for (const auto& [kind, tensors] : manifest.optimizer)
    for (const auto& [name, file] : tensors) rename[stored_name(kind, name)] = kind == wanted ? name : "";
  return rename_tensors(open_tensor_files(paths_of(checkpoint, manifest)), rename);
}

// The part of the files that this rank verifies: each goes to the rank with the fewest bytes so far.
void verify_share(const fs::path& checkpoint, const CheckpointManifest& manifest, int rank, int ranks) {
  std::vector<std::uint64_t> load(static_cast<std::size_t>(ranks), 0);
  for (const CheckpointManifest::File& file : manifest.files) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += file.bytes;
    if (least - load.begin() == rank) verify_file(checkpoint, file);
  }
}

class Load {
 public:
  Load(const fs::path& checkpoint, ParamStore& store, const StateTensors& optimizer, Mesh& mesh)
      : checkpoint_(checkpoint), store_(store), optimizer_(optimizer), mesh_(mesh) {}

  TrainState run() {
    Agreement agreement(mesh_.world(), store_.device());
    agreement.attempt([&] { manifest_ = read_manifest(checkpoint_); });
    agreement.settle();
    agreement.attempt([&] { verify_share(checkpoint_, manifest_, mesh_.world().rank(), mesh_.world().size()); });
    agreement.settle();
    agreement.attempt([&] { open_and_check(); });
    agreement.settle();
    agreement.attempt([&] { fill(); });
    agreement.settle();
    return manifest_.state;
  }

 private:
  void open_and_check() {
    const std::vector<NamedTensor> tensors = named_tensors(store_);
    std::vector<NamedTensor> trained;
    std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(trained),
                 [](const auto& t) { return t.trainable; });
    const auto nothing = [](const std::string&) { return false; };

    weights_ = open_kind(checkpoint_, manifest_, "");
    std::string faults = tensor_faults(tensors, *weights_, nothing, "");
    for (const auto& [kind, shards] : optimizer_) {
      states_.push_back(open_kind(checkpoint_, manifest_, kind));
      if (manifest_.optimizer.contains(kind))
        faults += tensor_faults(trained, *states_.back(), nothing, stored_name(kind, ""));
      else
        faults += "\n  missing: the optimizer state " + in_quotes(kind);
    }
    for (const auto& [kind, names] : manifest_.optimizer) {
      if (std::none_of(optimizer_.begin(), optimizer_.end(), [&](const auto& o) { return o.first == kind; }))
        faults += "\n  unknown: the optimizer state " + in_quotes(kind) + " is not used by this run's optimizer";
    }
    if (!faults.empty())
      throw Error(ErrorKind::kData, "the checkpoint " + checkpoint_.string() + " does not fit this run:" + faults);
  }

  void fill() {
    std::vector<float> local;
    for (Parameter* p : store_.parameters()) {
      local.resize(static_cast<std::size_t>(local_count(*p, mesh_.shape().tp)));
      const auto read = [&](const TensorSource& source) {
        read_local(*p, source, mesh_.shape().tp, mesh_.tp_rank(), local);
      };
      read(*weights_);
      store_.write(*p, local);
      if (!p->trainable) continue;
      for (std::size_t k = 0; k < optimizer_.size(); ++k) {
        read(*states_[k]);
        store_.scatter_shards(*p, optimizer_[k].second, local);
      }
    }
  }

  const fs::path& checkpoint_;
  ParamStore& store_;
  const StateTensors& optimizer_;
  Mesh& mesh_;
  CheckpointManifest manifest_;
  std::unique_ptr<TensorSource> weights_;
  std::vector<std::unique_ptr<TensorSource>> states_;
};

}  // namespace

TrainState load_checkpoint(const fs::path& checkpoint, ParamStore& store, const StateTensors& optimizer, Mesh& mesh) {
  return Load(checkpoint, store, optimizer, mesh).run();
}

fs::path find_checkpoint(const fs::path& run_or_checkpoint) {
  if (checkpoint_step(run_or_checkpoint.filename().string()) >= 0 || is_checkpoint_folder(run_or_checkpoint))
    return run_or_checkpoint;
  for (const fs::path& folder : {run_or_checkpoint / "checkpoints", run_or_checkpoint})
    if (const auto newest = CheckpointFolder(folder).newest()) return *newest;
  throw Error(ErrorKind::kData,
              run_or_checkpoint.string() +
                  " holds no complete checkpoint: give a run folder, its checkpoints folder, or one "
                  "checkpoint (step-...)");
}

std::unique_ptr<TensorSource> open_checkpoint_weights(const fs::path& run_or_checkpoint) {
  const fs::path checkpoint = find_checkpoint(run_or_checkpoint);
  const CheckpointManifest manifest = read_manifest(checkpoint);
  verify_share(checkpoint, manifest, 0, 1);
  return open_kind(checkpoint, manifest, "");
}

}  // namespace drivetrain
