#include <array>
#include <cstring>

#include "kernels/error.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/file_io.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/retention.h"
#include "runtime/checkpoint/tensor_gather.h"
#include "runtime/checkpoint/write_plan.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

constexpr int kLeader = 0;
constexpr std::size_t kHashDigits = 32;

std::string rank_file_name(int world_rank) {
  std::string digits = std::to_string(world_rank);
  if (digits.size() < 5) digits.insert(0, 5 - digits.size(), '0');
  return "rank-" + digits + ".safetensors";
}

// One save, from the making of the temporary folder to the removal of old checkpoints.
class Save {
 public:
  Save(const fs::path& folder, const SaveObserver& observer, const TrainState& state, ParamStore& store,
       const StateTensors& optimizer, Mesh& mesh)
      : folder_(folder),
        temporary_(folder / (kTemporaryPrefix + checkpoint_name(state.step))),
        observer_(observer),
        store_(store),
        optimizer_(optimizer),
        mesh_(mesh),
        tensors_(named_tensors(store)),
        plan_(plan_writes(tensors_, optimizer.size(), mesh.world().size())),
        agreement_(mesh.world(), store.device()) {
    manifest_.state = state;
    manifest_.mesh = mesh.shape();
  }

  void run(std::int64_t keep, const std::vector<std::pair<std::string, std::string>>& notes) {
    manifest_.notes = notes;
    const std::string name = checkpoint_name(manifest_.state.step);
    try {
      leader([&] { make_folder(); });
      write_own_tensors();
      collect_files();
      leader([&] { finish_folder(); });
      leader([&] { publish(name); });
    } catch (const Error&) {
      std::error_code ignored;
      if (is_leader()) fs::remove_all(temporary_, ignored);
      throw;
    }
    leader([&] {
      prune_checkpoints(folder_, name, keep);
      reached(SaveStage::kPruned);
    });
  }

 private:
  bool is_leader() const { return mesh_.world().rank() == kLeader; }
  void reached(SaveStage stage) const {
    if (observer_) observer_(stage);
  }
  // Collective: body runs on the leader alone.
  void leader(const std::function<void()>& body) {
    if (is_leader()) agreement_.attempt(body);
    agreement_.settle();
  }

  void make_folder() {
    fs::create_directories(folder_);
    remove_temporaries(folder_);
    fs::create_directory(temporary_);
    reached(SaveStage::kFolderMade);
  }

  std::string name_in_file(const PlannedTensor& planned) const {
    const std::string& name = tensors_[planned.tensor].name;
    return planned.kind == PlannedTensor::kWeights ? name : stored_name(optimizer_[planned.kind - 1].first, name);
  }

  bool writes_anything(int world_rank) const {
    for (const PlannedTensor& planned : plan_)
      if (planned.owner == world_rank) return true;
    return false;
  }

  // Every rank takes part in gathering every tensor, even after its own writing failed: its peers need its part.
  void write_own_tensors() {
    const int me = mesh_.world().rank();
    std::unique_ptr<SafetensorsWriter> writer;
    if (writes_anything(me)) agreement_.attempt([&] { writer = open_writer(); });
    TensorGather gather(store_, mesh_);
    for (const PlannedTensor& planned : plan_) {
      const Tensor shards = planned.kind == PlannedTensor::kWeights ? Tensor() : optimizer_[planned.kind - 1].second;
      const std::span<const float> values = gather.gather(tensors_[planned.tensor], shards, planned.owner);
      if (planned.owner != me) continue;
      agreement_.attempt([&] {
        writer->append(std::as_bytes(values));
        reached(SaveStage::kTensorWritten);
      });
    }
    if (writer == nullptr) return;
    agreement_.attempt([&] {
      own_hash_ = writer->finish();
      own_bytes_ = fs::file_size(temporary_ / rank_file_name(me));
      reached(SaveStage::kFileSynced);
    });
  }

  std::unique_ptr<SafetensorsWriter> open_writer() const {
    std::vector<SafetensorsWriter::Declared> declared;
    for (const PlannedTensor& planned : plan_) {
      if (planned.owner == mesh_.world().rank())
        declared.push_back({name_in_file(planned), FileDType::kF32, tensors_[planned.tensor].shape});
    }
    return std::make_unique<SafetensorsWriter>(temporary_ / rank_file_name(mesh_.world().rank()), declared,
                                               std::map<std::string, std::string>{{"format", "pt"}});
  }

  // Tells the leader the size and hash of every rank's file.
  void collect_files() {
    agreement_.settle();
    constexpr std::size_t kRecordBytes = sizeof(std::uint64_t) + kHashDigits;
    const auto ranks = static_cast<std::size_t>(mesh_.world().size());
    std::array<std::byte, kRecordBytes> own{};
    std::memcpy(own.data(), &own_bytes_, sizeof(own_bytes_));
    std::memcpy(own.data() + sizeof(own_bytes_), own_hash_.data(), own_hash_.size());
    const Buffer own_buffer(store_.device(), kRecordBytes), all_buffer(store_.device(), kRecordBytes * ranks);
    store_.device().upload(own_buffer.tensor(DType::kU8), own);
    mesh_.world().all_gather(all_buffer.tensor(DType::kU8), own_buffer.tensor(DType::kU8)).wait();
    std::vector<std::byte> all(kRecordBytes * ranks);
    store_.device().download(all, all_buffer.tensor(DType::kU8));

    for (std::size_t r = 0; r < ranks; ++r) {
      const std::byte* record = all.data() + r * kRecordBytes;
      CheckpointManifest::File file{rank_file_name(static_cast<int>(r)), 0, std::string(kHashDigits, '0')};
      std::memcpy(&file.bytes, record, sizeof(file.bytes));
      std::memcpy(file.xxh3_128.data(), record + sizeof(file.bytes), kHashDigits);
      if (file.bytes > 0) manifest_.files.push_back(std::move(file));
    }
  }

  void finish_folder() {
    for (const CheckpointManifest::File& file : manifest_.files) {
      std::error_code error;
      if (fs::file_size(temporary_ / file.name, error) != file.bytes || error)
        throw Error(ErrorKind::kIo, (temporary_ / file.name).string() +
                                        " was written by another rank but is not to be seen here: checkpoints need a "
                                        "folder that all hosts share");
    }
    for (const PlannedTensor& planned : plan_) {
      const std::string& name = tensors_[planned.tensor].name;
      const std::string file = rank_file_name(planned.owner);
      if (planned.kind == PlannedTensor::kWeights)
        manifest_.weights[name] = file;
      else
        manifest_.optimizer[optimizer_[planned.kind - 1].first][name] = file;
    }
    write_manifest(temporary_, manifest_);
    reached(SaveStage::kManifestWritten);
    write_done(temporary_);
    sync_folder(temporary_);
    reached(SaveStage::kDoneWritten);
  }

  void publish(const std::string& name) {
    replace_folder(temporary_, folder_ / name);
    reached(SaveStage::kRenamed);
    replace_text_file(folder_ / kLatestFile, name + "\n");
    reached(SaveStage::kLatestReplaced);
  }

  const fs::path& folder_;
  fs::path temporary_;
  const SaveObserver& observer_;
  ParamStore& store_;
  const StateTensors& optimizer_;
  Mesh& mesh_;
  std::vector<NamedTensor> tensors_;
  std::vector<PlannedTensor> plan_;
  Agreement agreement_;
  CheckpointManifest manifest_;
  std::uint64_t own_bytes_ = 0;
  std::string own_hash_;
};

}  // namespace

void CheckpointFolder::save(const TrainState& state, ParamStore& store, const StateTensors& optimizer, Mesh& mesh,
                            std::int64_t keep, const std::vector<std::pair<std::string, std::string>>& notes) {
  Save(folder_, observer_, state, store, optimizer, mesh).run(keep, notes);
}

}  // namespace drivetrain
