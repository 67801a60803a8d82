#include "kernels/cpu/matmul.h"

#include <dnnl.hpp>
#include <map>
#include <string>
#include <unordered_map>

namespace drivetrain::cpu {

namespace {

using dnnl::memory;

memory::data_type type_of(DType t) {
  switch (t) {
    case DType::kF32:
      return memory::data_type::f32;
    case DType::kBF16:
      return memory::data_type::bf16;
    default:
      throw Error(ErrorKind::kLogic, std::string("matmul has no ") + name(t));
  }
}

memory::format_tag tag_of(Layout layout) {
  switch (layout) {
    case Layout::kRows:
      return memory::format_tag::ab;
    case Layout::kColumns:
      return memory::format_tag::ba;
    case Layout::kPacked:
      break;
  }
  return memory::format_tag::any;
}

memory::desc describe(std::int64_t rows, std::int64_t cols, DType dtype, Layout layout) {
  return {{rows, cols}, type_of(dtype), tag_of(layout)};
}

// oneDNN never writes through an input; its interface only lacks the const.
void* input(const std::byte* p) {
  return const_cast<std::byte*>(p);
}

struct Plan {
  dnnl::matmul::primitive_desc desc;
  dnnl::matmul primitive;
  std::map<Layout, dnnl::reorder> packers;
};

template <class F>
auto checked(const MatmulShape& s, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    throw Error(ErrorKind::kDevice, "oneDNN refused a matmul of " + std::to_string(s.m) + " x " +
                                        std::to_string(s.n) + " x " + std::to_string(s.k) + " " + name(s.in) +
                                        " -> " + name(s.out) + ": " + e.message);
  }
}

}  // namespace

struct Matmul::State {
  // Generation meets a new shape per prompt length; beyond this many plans the oldest work is forgotten wholesale.
  static constexpr std::size_t kMaxPlans = 512;

  explicit State(HostPool& pool) : scratch(pool) {}
  Plan& plan(const MatmulShape& s);
  Plan make(const MatmulShape& s) const;

  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<MatmulShape, Plan> plans;
  Scratch scratch;
};

Plan Matmul::State::make(const MatmulShape& s) const {
  const auto a = describe(s.m, s.k, s.in, s.a), b = describe(s.k, s.n, s.in, s.b);
  const auto c = describe(s.m, s.n, s.out, Layout::kRows);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.write == Write::kAccumulate) {
    dnnl::post_ops ops;
    ops.append_sum(1.0f);
    attr.set_post_ops(ops);
  }
  const auto desc =
      s.bias ? dnnl::matmul::desc(a, b, describe(1, s.n, s.in, Layout::kRows), c) : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc primitive_desc(desc, attr, engine);
  return {primitive_desc, dnnl::matmul(primitive_desc), {}};
}

Plan& Matmul::State::plan(const MatmulShape& s) {
  const auto it = plans.find(s);
  if (it != plans.end()) return it->second;
  if (plans.size() >= kMaxPlans) plans.clear();
  return plans.emplace(s, make(s)).first->second;
}

Matmul::Matmul(HostPool& pool) : state_(std::make_unique<State>(pool)) {}
Matmul::~Matmul() = default;

void Matmul::run(const MatmulShape& s, std::byte* c, const std::byte* a, const std::byte* b, const std::byte* bias) {
  checked(s, [&] {
    const Plan& plan = state_->plan(s);
    const auto& d = plan.desc;
    const auto& engine = state_->engine;
    std::byte* scratch = state_->scratch.need(d.scratchpad_desc().get_size());
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, memory(d.src_desc(), engine, input(a))},
                                              {DNNL_ARG_WEIGHTS, memory(d.weights_desc(), engine, input(b))},
                                              {DNNL_ARG_DST, memory(d.dst_desc(), engine, c)},
                                              {DNNL_ARG_SCRATCHPAD, memory(d.scratchpad_desc(), engine, scratch)}};
    if (s.bias) arguments.emplace(DNNL_ARG_BIAS, memory(d.bias_desc(), engine, input(bias)));
    plan.primitive.execute(state_->stream, arguments);
    state_->stream.wait();
  });
}

std::size_t Matmul::packed_bytes(const MatmulShape& s) {
  return checked(s, [&] { return state_->plan(s).desc.weights_desc().get_size(); });
}

bool Matmul::same_packing(const MatmulShape& one, const MatmulShape& other) {
  return checked(one, [&] {
    const auto desc = state_->plan(one).desc.weights_desc();
    return desc == state_->plan(other).desc.weights_desc();
  });
}

void Matmul::pack(const MatmulShape& s, std::byte* packed, const std::byte* b, Layout from) {
  checked(s, [&] {
    Plan& plan = state_->plan(s);
    memory source(describe(s.k, s.n, s.in, from), state_->engine, input(b));
    memory target(plan.desc.weights_desc(), state_->engine, packed);
    auto it = plan.packers.find(from);
    if (it == plan.packers.end()) it = plan.packers.emplace(from, dnnl::reorder(source, target)).first;
    it->second.execute(state_->stream, source, target);
    state_->stream.wait();
  });
}

}  // namespace drivetrain::cpu
