#include "kernels/cpu/linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <tuple>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/pair_gemm.h"

namespace drivetrain::cpu {

namespace {

constexpr std::int64_t kLongSum = 512, kPiece = 192;  // products in one f32 sum

[[noreturn]] void misfit(const char* op, std::initializer_list<Tensor> tensors) {
  std::string message = std::string(op) + ": shapes or types do not fit:";
  for (const Tensor& t : tensors) message.append(" ").append(t.present() ? t.describe() : "none");
  throw Error(ErrorKind::kLogic, message);
}

bool is_compute(DType t) {
  return t == DType::kF32 || t == DType::kBF16 || t == DType::kF16;
}

bool is_matrix(Tensor t, std::int64_t rows, std::int64_t cols) {
  return t.ndim >= 2 && t.dim(-1) == cols && t.count() == rows * cols;
}

std::int64_t rows_of(Tensor t) {
  return t.count() == 0 ? 0 : t.count() / t.dim(-1);
}

// What a product computes in: bf16 when the processor can, else f32.
DType compute_type(DType storage) {
  return storage == DType::kBF16 && has_bf16_dot() ? DType::kBF16 : DType::kF32;
}

// AMX multiplies in tiles that only oneDNN knows.
bool takes_pairs(DType storage) {
  return storage == DType::kBF16 && has_bf16_dot() && !has_amx();
}

bool keeps_packed(std::int64_t n, DType dtype) {
  return n <= kPackRows && !takes_pairs(dtype) && compute_type(dtype) == dtype;
}

MatmulShape dx_shape(std::int64_t m, std::int64_t n, std::int64_t k, DType in, DType out, Layout w) {
  return {m, k, n, in, out, Layout::kRows, w, false, Write::kOverwrite};
}

}  // namespace

struct Linear::State {
  struct Packed {
    explicit Packed(HostPool& pool) : memory(pool) {}
    Scratch memory;
    MatmulShape shape{};
    std::uint64_t generation = 0;
  };
  using Key = std::tuple<const std::byte*, std::int64_t, std::int64_t, DType>;

  explicit State(HostPool& p)
      : pool(p),
        matmul(p),
        pairs(p),
        widened{Scratch(p), Scratch(p), Scratch(p)},
        pieces{Scratch(p), Scratch(p)},
        result(p),
        packed_x(p) {}
  Tensor in_type(Tensor t, DType wanted, std::size_t slot);
  const std::byte* packed_weight(const MatmulShape& shape, Tensor w);
  void run(const MatmulShape& shape, Tensor c, Tensor a, const std::byte* b, Tensor bias);
  Tensor piece(Tensor x, std::int64_t begin, std::int64_t count, std::size_t slot);
  void long_sums(Tensor y, Tensor x, Tensor w, Tensor bias);

  HostPool& pool;
  Matmul matmul;
  PairGemm pairs;
  std::map<Key, Packed> weights;
  std::uint64_t generation = 1;
  std::array<Scratch, 3> widened;
  std::array<Scratch, 2> pieces;
  Scratch result;
  Scratch packed_x;
};

// t itself, or its copy in the wanted type.
Tensor Linear::State::in_type(Tensor t, DType wanted, std::size_t slot) {
  if (!t.present() || t.dtype == wanted) return t;
  const auto bytes = static_cast<std::size_t>(t.count()) * size_of(wanted);
  const Tensor out(widened[slot].need(bytes), wanted, {t.count()});
  copy(out, t.reshape({t.count()}));
  return out;
}

const std::byte* Linear::State::packed_weight(const MatmulShape& shape, Tensor w) {
  const auto it = weights.try_emplace(Key{w.data, w.dim(0), w.dim(1), w.dtype}, pool).first;
  Packed& entry = it->second;
  if (entry.generation == generation && matmul.same_packing(entry.shape, shape)) return entry.memory.need(0);
  std::byte* memory = entry.memory.need(matmul.packed_bytes(shape));
  matmul.pack(shape, memory, w.data, Layout::kRows);
  entry.shape = shape;
  entry.generation = generation;
  return memory;
}

// c in a type that the product cannot write passes through f32.
void Linear::State::run(const MatmulShape& shape, Tensor c, Tensor a, const std::byte* b, Tensor bias) {
  if (c.dtype == shape.out) {
    matmul.run(shape, c.data, a.data, b, bias.data);
    return;
  }
  const Tensor wide(result.need(static_cast<std::size_t>(c.count()) * size_of(shape.out)), shape.out, {c.count()});
  matmul.run(shape, wide.data, a.data, b, bias.data);
  copy(c.reshape({c.count()}), wide);
}

// Columns [begin, begin + count) of x (rows, k), dense. oneDNN 2.6 reads past the last row of an operand with gaps
// between its rows, so pieces are copied, and leave room behind them.
Tensor Linear::State::piece(Tensor x, std::int64_t begin, std::int64_t count, std::size_t slot) {
  constexpr std::size_t kRoom = 64u << 10;
  const std::int64_t rows = rows_of(x), k = x.dim(-1);
  const auto width = static_cast<std::size_t>(count) * sizeof(float);
  const Tensor out(pieces[slot].need(static_cast<std::size_t>(rows) * width + kRoom), DType::kF32, {rows, count});
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(out.as<float>() + r * count, x.as<float>() + r * k + begin, width);
  return out;
}

// One running f32 sum over thousands of products loses digits where activations are large (Higham 2002, section 4.2:
// the bound grows with the length); sums of pieces, added up, lose fewer.
void Linear::State::long_sums(Tensor y, Tensor x, Tensor w, Tensor bias) {
  const std::int64_t m = rows_of(x), n = w.dim(0), k = w.dim(-1);
  for (std::int64_t at = 0; at < k; at += kPiece) {
    const bool first = at == 0;
    const std::int64_t length = std::min(kPiece, k - at);
    const Tensor xs = piece(x, at, length, 0), ws = piece(w, at, length, 1);
    const MatmulShape shape{m,
                            n,
                            length,
                            DType::kF32,
                            DType::kF32,
                            Layout::kRows,
                            Layout::kColumns,
                            first && bias.present(),
                            first ? Write::kOverwrite : Write::kAccumulate};
    matmul.run(shape, y.data, xs.data, ws.data, first ? bias.data : nullptr);
  }
}

Linear::Linear(HostPool& pool) : state_(std::make_unique<State>(pool)) {}
Linear::~Linear() = default;

void Linear::forward(Tensor y, Tensor x, Tensor w, Tensor bias) {
  const std::int64_t m = rows_of(x), n = w.dim(0), k = w.dim(-1);
  if (w.ndim != 2 || !is_matrix(x, m, k) || !is_matrix(y, m, n) || !is_compute(x.dtype) || w.dtype != x.dtype ||
      (y.dtype != x.dtype && y.dtype != DType::kF32) ||
      (bias.present() && (bias.count() != n || bias.dtype != x.dtype)))
    misfit("linear", {y, x, w, bias});
  if (m == 0) return;
  if (takes_pairs(x.dtype) && PairGemm::fits(m, k))
    return state_->pairs.product(y, x, w, RightOperand::kRowsAreColumns, bias);
  const DType in = compute_type(x.dtype), out = y.dtype == in ? in : DType::kF32;
  const Tensor xs = state_->in_type(x, in, 0), ws = state_->in_type(w, in, 1), bs = state_->in_type(bias, in, 2);
  if (in == DType::kF32 && y.dtype == DType::kF32 && k > kLongSum)
    return state_->long_sums(y, xs.reshape({m, k}), ws.reshape({n, k}), bs);
  const MatmulShape shape{m, n, k, in, out, Layout::kRows, Layout::kColumns, bias.present(), Write::kOverwrite};
  state_->run(shape, y, xs, ws.data, bs);
}

void Linear::dx(Tensor dx, Tensor dy, Tensor w) {
  const std::int64_t m = rows_of(dy), n = w.dim(0), k = w.dim(-1);
  if (w.ndim != 2 || !is_matrix(dy, m, n) || !is_matrix(dx, m, k) || !is_compute(dy.dtype) || w.dtype != dy.dtype ||
      (dx.dtype != dy.dtype && dx.dtype != DType::kF32))
    misfit("linear_dx", {dx, dy, w});
  if (m == 0) return;
  if (takes_pairs(dy.dtype) && PairGemm::fits(m, n))
    return state_->pairs.product(dx, dy, w, RightOperand::kColumns, {});
  const DType in = compute_type(dy.dtype), out = dx.dtype == in ? in : DType::kF32;
  const Tensor dys = state_->in_type(dy, in, 0);
  if (keeps_packed(n, w.dtype)) {
    const MatmulShape shape = dx_shape(m, n, k, in, out, Layout::kPacked);
    state_->run(shape, dx, dys, state_->packed_weight(shape, w), {});
  } else {
    state_->run(dx_shape(m, n, k, in, out, Layout::kRows), dx, dys, state_->in_type(w, in, 1).data, {});
  }
}

void Linear::dw(Tensor dw, Tensor dy, Tensor x, Write write) {
  const std::int64_t m = rows_of(x), n = dy.dim(-1), k = x.dim(-1);
  if (dw.ndim != 2 || !is_matrix(dw, n, k) || !is_matrix(dy, m, n) || !is_matrix(x, m, k) ||
      dw.dtype != DType::kF32 || !is_compute(x.dtype) || dy.dtype != x.dtype)
    misfit("linear_dw", {dw, dy, x});
  if (m == 0) {
    if (write == Write::kOverwrite) std::memset(dw.data, 0, dw.bytes());
    return;
  }
  if (takes_pairs(x.dtype) && PairGemm::fits_dw(n, k)) return state_->pairs.dw(dw, dy, x, write);
  const DType in = compute_type(x.dtype);
  const Tensor dys = state_->in_type(dy, in, 0), xs = state_->in_type(x, in, 1);
  const MatmulShape shape{n, k, m, in, DType::kF32, Layout::kColumns, Layout::kPacked, false, write};
  std::byte* packed = state_->packed_x.need(state_->matmul.packed_bytes(shape));
  state_->matmul.pack(shape, packed, xs.data, Layout::kRows);
  state_->matmul.run(shape, dw.data, dys.data, packed, nullptr);
}

void Linear::weights_changed() {
  std::erase_if(state_->weights, [&](const auto& entry) { return entry.second.generation < state_->generation; });
  ++state_->generation;
}

std::size_t Linear::packed_weight_bytes(std::int64_t n, std::int64_t k, DType dtype) const {
  if (!keeps_packed(n, dtype)) return 0;
  constexpr std::int64_t kAnyRows = 256;
  return state_->matmul.packed_bytes(dx_shape(kAnyRows, n, k, dtype, dtype, Layout::kPacked));
}

}  // namespace drivetrain::cpu
