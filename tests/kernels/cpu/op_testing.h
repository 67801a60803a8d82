// What the op tests share: host tensors that read and write doubles, shapes and dtypes to run over, comparisons, and
// finite differences. No GPU, no ranks.
#pragma once
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/tensor.h"

namespace drivetrain::testing {

inline double get(const Tensor& t, std::int64_t i) {
  switch (t.dtype) {
    case DType::kF32:
      return static_cast<double>(t.as<float>()[i]);
    case DType::kF64:
      return t.as<double>()[i];
    case DType::kBF16:
      return static_cast<double>(static_cast<float>(t.as<bf16>()[i]));
    case DType::kF16:
      return static_cast<double>(static_cast<float>(t.as<f16>()[i]));
    case DType::kI32:
      return t.as<std::int32_t>()[i];
    case DType::kI64:
      return static_cast<double>(t.as<std::int64_t>()[i]);
    default:
      return t.as<std::uint8_t>()[i];
  }
}

inline void set(const Tensor& t, std::int64_t i, double x) {
  switch (t.dtype) {
    case DType::kF32:
      t.as<float>()[i] = static_cast<float>(x);
      return;
    case DType::kF64:
      t.as<double>()[i] = x;
      return;
    case DType::kBF16:
      t.as<bf16>()[i] = bf16(static_cast<float>(x));
      return;
    case DType::kF16:
      t.as<f16>()[i] = f16(static_cast<float>(x));
      return;
    case DType::kI32:
      t.as<std::int32_t>()[i] = static_cast<std::int32_t>(x);
      return;
    case DType::kI64:
      t.as<std::int64_t>()[i] = static_cast<std::int64_t>(x);
      return;
    default:
      t.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(x);
  }
}

// A tensor with its own memory. Fresh elements are NaN (or a large integer), so that an unwritten one is seen.
class Host {
 public:
  Host(DType dtype, std::initializer_list<std::int64_t> dims) : tensor_(nullptr, dtype, dims) {
    bytes_.assign(tensor_.bytes() + 1, std::byte{0xff});
  }
  static Host filled(DType dtype, std::initializer_list<std::int64_t> dims, double x) {
    Host h(dtype, dims);
    for (std::int64_t i = 0; i < h.count(); ++i) h.put(i, x);
    return h;
  }
  static Host random(DType dtype, std::initializer_list<std::int64_t> dims, unsigned seed, double low = -1,
                     double high = 1) {
    Host h(dtype, dims);
    std::mt19937 engine(seed);
    std::uniform_real_distribution<double> uniform(low, high);
    for (std::int64_t i = 0; i < h.count(); ++i) h.put(i, uniform(engine));
    return h;
  }
  static Host of(DType dtype, std::initializer_list<std::int64_t> dims, const std::vector<double>& values) {
    Host h(dtype, dims);
    for (std::int64_t i = 0; i < h.count(); ++i) h.put(i, values.at(static_cast<std::size_t>(i)));
    return h;
  }

  Tensor view() const {
    Tensor t = tensor_;
    t.data = const_cast<std::byte*>(bytes_.data());
    return t;
  }
  operator Tensor() const { return view(); }
  std::int64_t count() const { return tensor_.count(); }
  double at(std::int64_t i) const { return get(view(), i); }
  void put(std::int64_t i, double x) { set(view(), i, x); }
  std::vector<double> values() const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < count(); ++i) all.push_back(at(i));
    return all;
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  Tensor tensor_;
  std::vector<std::byte> bytes_;
};

// Distance between 1 and the next number.
inline double epsilon(DType t) {
  return t == DType::kBF16 ? 0x1p-7 : t == DType::kF16 ? 0x1p-10 : 0x1p-23;
}
inline double rounded(DType t, double x) {
  Host h(t, {1});
  h.put(0, x);
  return h.at(0);
}

// |got - want| <= slack + units * epsilon * |want|, element by element.
inline void expect_close(const Tensor& got, const std::vector<double>& want, double units, double slack) {
  ASSERT_EQ(static_cast<std::size_t>(got.count()), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double x = get(got, static_cast<std::int64_t>(i));
    const double limit = slack + units * epsilon(got.dtype) * std::abs(want[i]);
    ASSERT_LE(std::abs(x - want[i]), limit) << "element " << i << " is " << x << ", wanted " << want[i];
  }
}
inline void expect_equal(const Tensor& got, const std::vector<double>& want) {
  ASSERT_EQ(static_cast<std::size_t>(got.count()), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) ASSERT_EQ(get(got, static_cast<std::int64_t>(i)), want[i]) << i;
}

// Central differences of a scalar function of x.
inline std::vector<double> slope(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x) {
  constexpr double kStep = 1e-5;
  std::vector<double> result;
  for (double& xi : x) {
    const double at = xi;
    xi = at + kStep;
    const double high = f(x);
    xi = at - kStep;
    const double low = f(x);
    xi = at;
    result.push_back((high - low) / (2 * kStep));
  }
  return result;
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Runs `op` with one and with two threads on fresh outputs and expects the same bytes.
inline void expect_same_with_threads(const std::function<Host()>& op) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  const Host one = op();
  omp_set_num_threads(2);
  const Host two = op();
  omp_set_num_threads(before);
  EXPECT_EQ(one.bytes(), two.bytes());
}

struct Shape {
  DType dtype;
  std::int64_t rows, cols;
};
inline std::string shape_name(const ::testing::TestParamInfo<Shape>& info) {
  return std::string(name(info.param.dtype)) + "_" + std::to_string(info.param.rows) + "x" +
         std::to_string(info.param.cols);
}
inline std::vector<Shape> all_shapes() {
  std::vector<Shape> shapes;
  for (const DType t : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const std::int64_t cols : {1, 3, 17, 64, 100, 257}) shapes.push_back({t, 5, cols});
    shapes.push_back({t, 0, 17});
  }
  return shapes;
}

}  // namespace drivetrain::testing
