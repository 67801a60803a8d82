#include "models/init.h"

#include <vector>

#include "kernels/philox.h"

namespace drivetrain {
namespace {

std::uint64_t fnv1a(const std::string& text) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

// Element i of the tensor is lane i % 4 of the draw with counter i / 4; neighbours in a row share a draw.
void fill_normal(std::span<float> out, std::int64_t first, float std, PhiloxKey key, std::uint64_t stream) {
  std::array<float, 4> draw{};
  std::int64_t drawn = -1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t element = first + static_cast<std::int64_t>(i), counter = element / 4;
    if (counter != drawn) {
      drawn = counter;
      draw = normal4(philox({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                             static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
                            key));
    }
    out[i] = std * draw[static_cast<std::size_t>(element % 4)];
  }
}

std::vector<float> initial_values(const Parameter& p, int tp, int tp_rank, PhiloxKey key) {
  const LocalCols cols = local_cols(p, tp, tp_rank);
  std::vector<float> out(static_cast<std::size_t>(local_count(p, tp)), 0.0f);
  for (std::size_t b = 0; b < p.blocks.size(); ++b) {
    const LocalRows rows = local_rows(p, b, tp, tp_rank);
    const std::uint64_t stream = fnv1a(p.blocks[b].hf_name);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::span<float> row(out.data() + (rows.local_begin + r) * cols.padded,
                                 static_cast<std::size_t>(cols.count));
      const std::int64_t full_row = p.blocks[b].hf_row_begin + rows.block_begin + r;
      if (p.init == Parameter::Init::kNormal)
        fill_normal(row, full_row * p.cols + cols.begin, p.init_std, key, stream);
      else
        std::fill(row.begin(), row.end(), p.init == Parameter::Init::kOnes ? 1.0f : 0.0f);
    }
  }
  return out;
}

}  // namespace

void init_parameters(ParamStore& store, const Mesh& mesh, std::uint64_t seed) {
  for (const Parameter* p : store.parameters())
    store.write(*p, initial_values(*p, mesh.shape().tp, mesh.tp_rank(), philox_key(seed)));
}

}  // namespace drivetrain
