#include <algorithm>

#include "kernels/error.h"
#include "runtime/checkpoint/agreement.h"
#include "runtime/checkpoint/file_io.h"
#include "runtime/checkpoint/float_convert.h"
#include "runtime/checkpoint/named_tensors.h"
#include "runtime/checkpoint/param_io.h"
#include "runtime/checkpoint/safetensors_header.h"
#include "runtime/checkpoint/tensor_gather.h"

namespace drivetrain {
namespace {

namespace fs = std::filesystem;

constexpr int kWriter = 0;
constexpr const char* kFile = "model.safetensors";

void append_converted(SafetensorsWriter& writer, const NamedTensor& t, FileDType dtype,
                      std::span<const float> values) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < values.size(); at += kChunk) {
    const auto chunk = values.subspan(at, std::min(kChunk, values.size() - at));
    bytes.resize(chunk.size() * size_of(dtype));
    if (const auto bad = from_floats(bytes, dtype, chunk))
      throw Error(ErrorKind::kNumeric, "element " + std::to_string(at + *bad) + " of " + in_quotes(t.name) + " is " +
                                           std::to_string(chunk[*bad]) +
                                           ", beyond the range of the dtype to export; export as bf16 or f32");
    writer.append(bytes);
  }
}

}  // namespace

void load_values(ParamStore& store, Mesh& mesh, const TensorSource& source) {
  Agreement agreement(mesh.world(), store.device());
  agreement.attempt([&] {
    std::vector<float> local;
    for (Parameter* p : store.parameters()) {
      local.resize(static_cast<std::size_t>(local_count(*p, mesh.shape().tp)));
      read_local(*p, source, mesh.shape().tp, mesh.tp_rank(), local);
      store.write(*p, local);
    }
  });
  agreement.settle();
}

void export_weights(ParamStore& store, Mesh& mesh, const fs::path& folder, FileDType dtype) {
  const std::vector<NamedTensor> tensors = named_tensors(store);
  const fs::path temporary = folder / (std::string(".tmp-") + kFile);
  Agreement agreement(mesh.world(), store.device());
  std::unique_ptr<SafetensorsWriter> writer;
  if (mesh.world().rank() == kWriter) {
    agreement.attempt([&] {
      std::vector<SafetensorsWriter::Declared> declared;
      for (const NamedTensor& t : tensors) declared.push_back({t.name, dtype, t.shape});
      fs::create_directories(folder);
      // transformers refuses files whose metadata does not name a framework.
      writer = std::make_unique<SafetensorsWriter>(temporary, declared,
                                                   std::map<std::string, std::string>{{"format", "pt"}});
    });
  }
  agreement.settle();

  TensorGather gather(store, mesh);
  for (const NamedTensor& t : tensors) {
    const std::span<const float> values = gather.gather(t, Tensor(), kWriter);
    if (mesh.world().rank() == kWriter) agreement.attempt([&] { append_converted(*writer, t, dtype, values); });
  }
  if (mesh.world().rank() == kWriter) {
    agreement.attempt([&] {
      writer->finish();
      fs::rename(temporary, folder / kFile);
      sync_folder(folder);
    });
    std::error_code ignored;
    if (agreement.failed()) fs::remove(temporary, ignored);
  }
  agreement.settle();
}

}  // namespace drivetrain
