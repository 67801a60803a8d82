// A hand-made parameter table with every kind of split, block and orientation, whose full tensors have values that can
// be computed for any element; and one rank's store of it. No model code.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_device.h"
#include "kernels/ops.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/comm/communicator.h"
#include "runtime/param_store.h"

namespace drivetrain::test {

// Element i of the full tensor `name`, as the file stores it; kind: "" for weights, "m", "v". Needs all bits of a float.
inline float element(const std::string& kind, const std::string& name, std::int64_t i) {
  std::uint64_t h = 1469598103934665603u;
  for (const char c : kind + "/" + name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  h = (h ^ static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  return std::bit_cast<float>(0x3f800000u | static_cast<std::uint32_t>(h >> 20 & 0x7fffffu)) - 1.5f;
}

inline Parameter matrix(const std::string& name, std::int64_t cols, Split split, std::vector<Block> blocks) {
  Parameter p;
  p.name = name;
  p.blocks = std::move(blocks);
  p.cols = cols;
  p.split = split;
  return p;
}

inline Parameter vector(const std::string& name, Split split, std::vector<Block> blocks) {
  Parameter p = matrix(name, 1, split, std::move(blocks));
  p.vector = true;
  return p;
}

// In no particular order of backward; sizes that tp 2 and 4 do not divide where a split allows it.
inline std::list<Parameter> small_table() {
  std::list<Parameter> table;
  table.push_back(matrix("head", 8, Split::kRows, {{13, "wte", 0, 13, false}}));
  table.push_back(
      matrix("qkv", 8, Split::kRows, {{8, "q", 0, 8, false}, {4, "k", 0, 4, false}, {4, "v", 0, 4, false}}));
  table.push_back(
      matrix("c_attn", 8, Split::kRows,
             {{5, "c_attn.w", 0, 15, true}, {5, "c_attn.w", 5, 15, true}, {5, "c_attn.w", 10, 15, true}}));
  table.push_back(
      vector("c_attn.b", Split::kRows,
             {{5, "c_attn.b", 0, 15, false}, {5, "c_attn.b", 5, 15, false}, {5, "c_attn.b", 10, 15, false}}));
  table.push_back(matrix("down", 8, Split::kCols, {{6, "down", 0, 6, false}}));
  table.push_back(matrix("c_proj", 40, Split::kCols, {{5, "c_proj", 0, 5, true}}));
  // Three key/value heads of two rows, two query heads each: tp 2 holds two and one, tp 4 leaves one rank with none.
  table.push_back(matrix("heads", 8, Split::kRows, {{12, "hq", 0, 12, false, 4}, {6, "hk", 0, 6, false, 2}}));
  table.push_back(matrix("merge", 12, Split::kCols, {{5, "merge", 0, 5, false}}));
  table.back().col_unit = 4;
  table.push_back(matrix("turn", 7, Split::kCols, {{5, "turn", 0, 5, true}}));
  table.push_back(vector("norm", Split::kNone, {{8, "norm", 0, 8, false}}));
  table.back().tp_partial = true;
  table.push_back(vector("bias", Split::kNone, {{6, "bias", 0, 6, false}}));
  table.push_back(matrix("frozen", 5, Split::kRows, {{3, "frozen", 0, 3, false}}));
  table.back().trainable = false;
  return table;
}

// Writes all tensors of the table as one safetensors file.
inline void write_full(const std::list<Parameter>& table, const std::filesystem::path& file,
                       const std::string& kind) {
  std::vector<SafetensorsWriter::Declared> declared;
  for (const Parameter& p : table) {
    for (const Block& b : p.blocks) {
      if (b.hf_row_begin != 0) continue;
      std::vector<std::int64_t> shape{b.hf_rows, p.cols};
      if (b.transposed) std::swap(shape[0], shape[1]);
      if (p.vector) shape.pop_back();
      declared.push_back({b.hf_name, FileDType::kF32, shape});
    }
  }
  SafetensorsWriter writer(file, declared, {});
  for (const auto& d : declared) {
    std::int64_t count = 1;
    for (const std::int64_t dim : d.shape) count *= dim;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = element(kind, d.name, i);
    writer.append(std::as_bytes(std::span(values)));
  }
  writer.finish();
}

// What a tensor rank must hold, written down element by element and without the code under test.
inline std::vector<float> expected_local(const Parameter& p, const std::string& kind, int tp, int tp_rank) {
  std::vector<float> out;
  const auto dealt = [tp](std::int64_t total, std::int64_t unit) {
    const std::int64_t units = total / unit + (total % unit != 0);
    return unit * (units / tp + (units % tp != 0));
  };
  const std::int64_t width = p.split == Split::kCols ? dealt(p.cols, p.col_unit) : p.cols;
  const std::int64_t first_col = p.split == Split::kCols ? width * tp_rank : 0;
  for (const Block& b : p.blocks) {
    const std::int64_t share = p.split == Split::kRows ? dealt(b.rows, b.unit) : b.rows;
    for (std::int64_t i = 0; i < share; ++i) {
      const std::int64_t row = (p.split == Split::kRows ? share * tp_rank : 0) + i;
      for (std::int64_t c = first_col; c < first_col + width; ++c) {
        const std::int64_t hf_row = b.hf_row_begin + row;
        const std::int64_t at = b.transposed ? c * b.hf_rows + hf_row : hf_row * p.cols + c;
        out.push_back(row < b.rows && c < p.cols ? element(kind, b.hf_name, at) : 0.0f);
      }
    }
  }
  return out;
}

// One rank: its mesh, store and optimizer state of a table.
class RankStore {
 public:
  RankStore(Communicator& world, MeshShape shape, const StoreOptions& options,
            std::list<Parameter> table = small_table())
      : table_(std::move(table)), mesh_(world.split(0, world.rank()), shape) {
    for (Parameter& p : table_) store_.add(p);
    store_.materialize(*device_, mesh_, options);
    for (const char* kind : {"m", "v"}) {
      moments_.emplace_back(*device_, static_cast<std::size_t>(store_.shard_count()) * sizeof(float));
      optimizer_.emplace_back(kind, moments_.back().tensor(DType::kF32));
      device_->ops().zero(optimizer_.back().second);
    }
  }

  ParamStore& store() { return store_; }
  Mesh& mesh() { return mesh_; }
  StateTensors& optimizer() { return optimizer_; }
  std::list<Parameter>& table() { return table_; }

  // Sets values, masters and moments to what the full tensors say, without the code under test.
  void fill() {
    for (const Parameter& p : table_) {
      store_.write(p, expected(p, ""));
      if (!p.trainable) continue;
      for (const auto& [kind, shards] : optimizer_) store_.scatter_shards(p, shards, expected(p, kind));
    }
  }
  std::vector<float> expected(const Parameter& p, const std::string& kind) const {
    return expected_local(p, kind, mesh_.shape().tp, world_rank() % mesh_.shape().tp);
  }
  // Compares every bit of values, masters and moments with what the full tensors say.
  ::testing::AssertionResult holds_expected() {
    for (const Parameter& p : table_)
      if (!value_is_rounded(p, expected(p, ""))) return ::testing::AssertionFailure() << "value of " << p.name;
    return masters_expected();
  }
  // Masters and moments alone.
  ::testing::AssertionResult masters_expected() {
    for (const Parameter& p : table_) {
      if (!p.trainable) continue;
      std::vector<float> got(static_cast<std::size_t>(p.value.count()));
      store_.read_master(p, got);
      if (got != expected(p, "")) return ::testing::AssertionFailure() << "master of " << p.name;
      for (const auto& [kind, shards] : optimizer_) {
        store_.gather_shards(p, shards, got);
        if (got != expected(p, kind)) return ::testing::AssertionFailure() << kind << " of " << p.name;
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  int world_rank() const { return const_cast<Mesh&>(mesh_).world().rank(); }
  static bool value_is_rounded(const Parameter& p, const std::vector<float>& want) {
    for (std::size_t i = 0; i < want.size(); ++i) {
      const bool equal = p.value.dtype == DType::kF32 ? p.value.as<float>()[i] == want[i]
                                                      : p.value.as<bf16>()[i].bits == bf16(want[i]).bits;
      if (!equal) return false;
    }
    return true;
  }

  std::unique_ptr<Device> device_ = make_cpu_device(1);
  std::list<Parameter> table_;
  mutable Mesh mesh_;
  ParamStore store_;
  std::list<Buffer> moments_;
  StateTensors optimizer_;
};

inline StoreOptions small_options(DType compute, StoreOptions::Shard shard) {
  return {.compute = compute, .shard = shard, .bucket_bytes = 200 * sizeof(float)};
}

}  // namespace drivetrain::test
