#include "models/hf_weights.h"

#include <algorithm>
#include <vector>

#include "models/hf_names.h"

namespace drivetrain {
namespace {

bool same_tensor(const TensorSource& source, const std::string& a, const std::string& b) {
  const std::int64_t count = source.find(a)->count();
  if (count != source.find(b)->count()) return false;
  constexpr std::int64_t kChunk = 1 << 16;
  std::vector<float> x(kChunk), y(kChunk);
  for (std::int64_t at = 0; at < count; at += kChunk) {
    const auto n = static_cast<std::size_t>(std::min(kChunk, count - at));
    source.read(a, at, std::span(x).first(n));
    source.read(b, at, std::span(y).first(n));
    if (!std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n), y.begin())) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<TensorSource> open_model_weights(const std::filesystem::path& folder, const ModelConfig& config) {
  std::unique_ptr<TensorSource> source = open_tensor_folder(folder);
  const auto rename = stored_names(config, source->names());
  if (!rename.empty()) source = rename_tensors(std::move(source), rename);
  const std::string head = head_name(config), embedding = token_embedding_name(config);
  if (config.tied && source->find(head) && source->find(embedding)) {
    if (!same_tensor(*source, head, embedding))
      throw Error(ErrorKind::kData,
                  source->where(head) + ": config.json says tie_word_embeddings, but " + head + " differs from " +
                      embedding + "; set \"tie_word_embeddings\": false to keep it, or remove it from the file");
    source = rename_tensors(std::move(source), {{head, ""}});
  }
  return source;
}

void load_model_weights(ParamStore& store, Mesh& mesh, const ModelConfig& config,
                        const std::filesystem::path& folder) {
  const auto source = open_model_weights(folder, config);
  check_tensors(store, *source, is_ignorable_tensor);
  load_values(store, mesh, *source);
}

}  // namespace drivetrain
