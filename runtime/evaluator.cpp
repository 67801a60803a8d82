#include "runtime/evaluator.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/ops.h"

namespace drivetrain {

double EvalResult::loss() const {
  return targets > 0 ? loss_sum / static_cast<double>(targets) : std::nan("");
}
double EvalResult::perplexity() const {
  return std::exp(loss());
}

Evaluator::Evaluator(Device& device, Mesh& mesh, const Dataset& dataset, const EvalOptions& options)
    : device_(device),
      mesh_(mesh),
      dataset_(dataset),
      options_(options),
      batch_(device, options.micro, dataset.seq_len()),
      sums_(device, 3 * sizeof(double)) {}

// Rows [first_turn, first_turn + micro) of this data rank; rows beyond the data set have no targets.
void Evaluator::fill(HostBatch& batch, std::int64_t first_turn) {
  const std::int64_t seq = dataset_.seq_len();
  const auto tokens = static_cast<std::size_t>(options_.micro * seq);
  batch.ids.assign(tokens, 0);
  batch.targets.assign(tokens, Ops::kIgnore);
  batch.positions.assign(tokens, 0);
  batch.doc_starts.assign(tokens, 0);
  batch.row_keys.assign(tokens, 0);
  for (std::int64_t row = 0; row < options_.micro; ++row) {
    const std::int64_t index = (first_turn + row) * mesh_.shape().dp + mesh_.dp_rank();
    if (index >= dataset_.size()) break;
    const auto begin = static_cast<std::size_t>(row * seq), count = static_cast<std::size_t>(seq);
    const auto part = [&](auto& all) { return std::span(all).subspan(begin, count); };
    dataset_.read(index, {part(batch.ids), part(batch.targets), part(batch.positions), part(batch.doc_starts)});
    batch.target_count += dataset_.target_count(index);
  }
}

EvalResult Evaluator::run(Model& model, Arena& arena) {
  const std::int64_t dp = mesh_.shape().dp, dp_rank = mesh_.dp_rank();
  std::int64_t mine = (dataset_.size() - dp_rank + dp - 1) / dp;
  if (options_.batches > 0) mine = std::min(mine, options_.batches * options_.micro);

  const Tensor sums = sums_.tensor(DType::kF64), loss_sum = sums.flat(0, 1);
  device_.ops().zero(sums);
  HostBatch host;
  for (std::int64_t turn = 0; turn < mine; turn += options_.micro) {
    fill(host, turn);
    model.evaluate(loss_sum, batch_.upload(host), arena);
  }
  // Every tensor rank has the same sum; one of them counts.
  const bool counts = mesh_.tp_rank() == 0;
  if (!counts) device_.ops().zero(loss_sum);
  const std::array<double, 2> host_counts{counts ? static_cast<double>(host.target_count) : 0,
                                          counts ? static_cast<double>(std::max<std::int64_t>(0, mine)) : 0};
  device_.upload(sums.flat(1, 2), std::as_bytes(std::span(host_counts)));
  mesh_.world().all_reduce(sums, ReduceOp::kSum).wait();
  std::array<double, 3> total{};
  device_.download(std::as_writable_bytes(std::span(total)), sums);
  return {total[0], std::llround(total[1]), std::llround(total[2])};
}

}  // namespace drivetrain
