#include "kernels/plan_device.h"

#include <algorithm>
#include <map>
#include <set>

namespace drivetrain {
namespace {

class PlanOps final : public Ops {
 public:
  explicit PlanOps(const Ops* like) : like_(like) {}
  PlannedWork work() const { return work_; }

  void zero(Tensor) override { count(); }
  void copy(Tensor, Tensor) override { count(); }
  void add(Tensor, Tensor, Tensor) override { count(); }
  void linear(Tensor y, Tensor x, Tensor w, Tensor) override {
    see_weight(w);
    gemm(y.count(), x.dim(-1));
  }
  void linear_dx(Tensor dx, Tensor dy, Tensor w) override {
    see_weight(w);
    gemm(dx.count(), dy.dim(-1));
  }
  void linear_dw(Tensor dw, Tensor dy, Tensor, Write) override { gemm(dw.count(), dy.matrix().dim(0)); }
  void bias_grad(Tensor, Tensor, Write) override { count(); }
  void weights_changed() override {}
  std::size_t packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const override {
    return like_ ? like_->packed_weight_bytes(n, k, dtype) : 0;
  }
  void embedding(Tensor, Tensor, Tensor, std::int64_t, Write) override { count(); }
  void embedding_grad(Tensor, Tensor, Tensor, std::int64_t, Write) override { count(); }
  void rms_norm(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float) override { count(); }
  void rms_norm_grad(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Write) override { count(); }
  void layer_norm(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, float) override { count(); }
  void layer_norm_grad(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Write) override { count(); }
  void gelu(Tensor, Tensor) override { count(); }
  void gelu_grad(Tensor, Tensor, Tensor) override { count(); }
  void swiglu(Tensor, Tensor) override { count(); }
  void swiglu_grad(Tensor, Tensor, Tensor) override { count(); }
  void dropout(Tensor, Tensor, Tensor, Dropout) override { count(); }
  void rope(Tensor, Tensor, Tensor, Tensor, const AttentionShape&) override { count(); }
  void rope_grad(Tensor, Tensor, Tensor, Tensor, const AttentionShape&) override { count(); }
  void attention(Tensor, Tensor, Tensor, Tensor, Tensor, const AttentionShape& s, Dropout, std::int64_t) override {
    attend(s, 2);
  }
  void attention_grad(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, const AttentionShape& s,
                      Dropout, std::int64_t) override {
    attend(s, 5);
  }
  void kv_store(Tensor, Tensor, const AttentionShape&, std::int64_t) override { count(); }
  void attention_decode(Tensor, Tensor, Tensor, const AttentionShape&, std::int64_t) override { count(); }
  void loss_stats(Tensor, Tensor, Tensor, VocabSlice) override { count(); }
  void loss_sum(Tensor, Tensor, Tensor) override { count(); }
  void loss_grad(Tensor, Tensor, Tensor, VocabSlice, float) override { count(); }
  void sum_squares(Tensor, Tensor) override { count(); }
  void adamw(Tensor, Tensor, Tensor, Tensor, Tensor, const AdamWArgs&) override { count(); }

 private:
  void count() { ++work_.calls; }
  void see_weight(Tensor w) {
    if (weights_.insert(w.data).second) work_.packed_bytes += packed_weight_bytes(w.dim(0), w.dim(1), w.dtype);
  }
  void gemm(std::int64_t outputs, std::int64_t inner) {
    work_.gemm_flops += 2.0 * static_cast<double>(outputs) * static_cast<double>(inner);
    count();
  }
  void attend(const AttentionShape& s, int products) {
    work_.attention_flops += products * static_cast<double>(s.batch * s.heads * s.head_dim) *
                             static_cast<double>(s.seq) * static_cast<double>(s.seq);
    count();
  }

  const Ops* like_;
  PlannedWork work_;
  std::set<std::byte*> weights_;
};

class PlanDeviceImpl final : public PlanDevice {
 public:
  explicit PlanDeviceImpl(const Ops* like) : ops_(like) {}
  DeviceKind kind() const override { return DeviceKind::kPlan; }
  std::string description() const override { return "plan"; }
  Ops& ops() override { return ops_; }

  std::byte* allocate(std::size_t bytes) override {
    auto* p = reinterpret_cast<std::byte*>(next_);  // NOLINT: an address that nobody dereferences
    next_ += (bytes + kPage - 1) / kPage * kPage + kPage;
    sizes_[p] = bytes;
    allocated_ += bytes;
    return p;
  }
  void release(std::byte* p) noexcept override {
    const auto it = sizes_.find(p);
    if (it == sizes_.end()) return;
    allocated_ -= it->second;
    sizes_.erase(it);
  }
  void upload(Tensor, std::span<const std::byte>) override {}
  void download(std::span<std::byte> dst, Tensor) override { std::fill(dst.begin(), dst.end(), std::byte{0}); }
  Event record(Lane) override { return {}; }
  void wait(Lane, const Event&) override {}
  void synchronize() override {}
  std::size_t allocated_bytes() const override { return allocated_; }
  PlannedWork work() const override { return ops_.work(); }

 private:
  static constexpr std::uintptr_t kPage = 4096;
  PlanOps ops_;
  std::uintptr_t next_ = std::uintptr_t{1} << 62;  // not a canonical user address: touching it faults at once
  std::map<std::byte*, std::size_t> sizes_;
  std::size_t allocated_ = 0;
};

}  // namespace

std::unique_ptr<PlanDevice> make_plan_device(const Ops* like) {
  return std::make_unique<PlanDeviceImpl>(like);
}

}  // namespace drivetrain
