#include "runtime/optim/adamw.h"

#include <algorithm>
#include <cmath>

namespace drivetrain {

AdamW::AdamW(Device& device, ParamStore& store, Mesh& mesh, const AdamWOptions& options)
    : device_(device), store_(store), mesh_(mesh), options_(options), sum_(device, sizeof(double)) {
  const std::int64_t n = store.shard_count();
  if (n > 0) {
    moments_ = Buffer(device, static_cast<std::size_t>(2 * n) * sizeof(float));
    device.ops().zero(moments_.tensor(DType::kF32));
    m_ = moments_.tensor(DType::kF32).flat(0, n);
    v_ = moments_.tensor(DType::kF32).flat(n, n);
  }
  collect_ranges();
}

void AdamW::collect_ranges() {
  const auto append = [](std::vector<Range>& ranges, const Range& r) {
    if (!ranges.empty()) {
      Range& last = ranges.back();
      if (last.decay == r.decay && last.flat_begin + last.count == r.flat_begin &&
          last.shard_begin + last.count == r.shard_begin) {
        last.count += r.count;
        return;
      }
    }
    ranges.push_back(r);
  };
  std::vector<const Parameter*> flat_order(store_.parameters().begin(), store_.parameters().end());
  std::stable_sort(flat_order.begin(), flat_order.end(),
                   [](const Parameter* a, const Parameter* b) { return a->flat_begin < b->flat_begin; });
  const bool all_dp_hold_it = store_.dp_shards() == 1;
  for (const Parameter* p : flat_order) {
    const OwnedRange owned = store_.owned(*p, store_.dp_shard());
    if (owned.count == 0) continue;
    const Range r{p->flat_begin + owned.begin, owned.shard_begin, owned.count, p->decay};
    append(updated_, r);
    const bool all_tp_hold_it = p->split == Split::kNone;
    if ((all_dp_hold_it && mesh_.dp_rank() != 0) || (all_tp_hold_it && mesh_.tp_rank() != 0)) continue;
    append(counted_, {r.flat_begin, r.shard_begin, r.count, true});
  }
}

StepResult AdamW::step(double lr, double unscale) {
  const Tensor sum = sum_.tensor(DType::kF64);
  device_.ops().zero(sum);
  add_squares(sum);
  mesh_.world().all_reduce(sum, ReduceOp::kSum).wait();
  double squares = 0;
  device_.download(std::as_writable_bytes(std::span(&squares, 1)), sum);
  return apply(lr, unscale, squares);
}

void AdamW::add_squares(Tensor sum) {
  for (const Range& r : counted_) device_.ops().sum_squares(sum, store_.grads().flat(r.flat_begin, r.count));
}

// Clipping as in torch.nn.utils.clip_grad_norm_: coefficient min(1, max_norm / (norm + 1e-6)).
StepResult AdamW::apply(double lr, double unscale, double sum_squares) {
  const double norm = std::sqrt(sum_squares) * unscale;
  if (!std::isfinite(norm)) return {norm, true};
  const double clip = options_.clip > 0 ? std::min(1.0, options_.clip / (norm + 1e-6)) : 1.0;
  ++updates_;
  Ops& ops = device_.ops();
  const bool master_is_value = store_.master().present() && store_.master().data == store_.values().data;
  for (const Range& r : updated_) {
    const AdamWArgs args{.lr = static_cast<float>(lr),
                         .beta1 = static_cast<float>(options_.beta1),
                         .beta2 = static_cast<float>(options_.beta2),
                         .eps = static_cast<float>(options_.eps),
                         .weight_decay = r.decay ? static_cast<float>(options_.weight_decay) : 0.0f,
                         .grad_scale = static_cast<float>(unscale * clip),
                         .step = updates_};
    ops.adamw(store_.master().flat(r.shard_begin, r.count), m_.flat(r.shard_begin, r.count),
              v_.flat(r.shard_begin, r.count),
              master_is_value ? Tensor() : store_.values().flat(r.flat_begin, r.count),
              store_.grads().flat(r.flat_begin, r.count), args);
  }
  if (store_.dp_shards() > 1) {
    std::vector<Work> gathers;
    for (const Bucket& b : store_.buckets())
      gathers.push_back(mesh_.dp().all_gather(store_.values().flat(b.begin, b.count),
                                              store_.values().flat(b.flat_shard_begin, b.shard_count)));
    for (Work& work : gathers) work.wait();
  }
  ops.weights_changed();
  return {norm, false};
}

StateTensors AdamW::state() {
  if (store_.shard_count() == 0) return {};
  return {{"m", m_}, {"v", v_}};
}

}  // namespace drivetrain
