// The fixtures of tests/golden/models: tiny Hugging Face models whose weights follow from a formula, and what
// transformers and PyTorch compute for them. Reads and writes files; knows nothing of our models. Made by
// tools/reference/make_model_golden.py, which documents cases, sampling and training.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace drivetrain::golden {

// A tensor as the model's file holds it: Hugging Face name, orientation and shape, f32.
struct Weight {
  std::string name;
  std::vector<std::int64_t> shape;
  double scale, offset;
  // Elements [first, second) that rounding alone decides in training (their gradient is zero); empty if equal.
  std::pair<std::int64_t, std::int64_t> undetermined;
  double first, last;  // what the script found at both ends

  std::int64_t count() const;
  // float(offset) + float(scale) * unit(name, index), row-major; see tools/reference/formula.py.
  std::vector<float> values() const;
};

// Every stride-th element of a flattened tensor.
struct Sample {
  std::vector<float> values;
  std::int64_t stride;
  std::int64_t count;  // elements of the whole tensor
  std::pair<std::int64_t, std::int64_t> undetermined;

  // Largest |ours - golden| over largest |golden|; elements in `undetermined` do not count. `ours` is the whole
  // tensor. Throws std::invalid_argument when its size is not `count`. NaN in `ours` gives infinity.
  double distance(std::span<const float> ours) const;
};

struct Case {
  std::int64_t batch, seq, vocab;
  std::vector<std::int32_t> ids, targets, positions, doc_starts;  // (batch, seq)
  std::vector<float> logits;                                      // (batch, seq, vocab)
  double loss;                                                    // mean over targets that are not -100
  std::int64_t target_count;
};

struct Training {  // step s trains on case cases[s % cases.size()]; AdamW, constant lr
  std::int64_t steps;
  std::vector<std::string> cases;
  double lr, beta1, beta2, eps, weight_decay, clip;
  std::vector<double> losses, grad_norms;    // before the update; before clipping
  std::map<std::string, double> final_sums;  // of each whole weight, without undetermined elements
};

std::vector<std::string> fixture_names();

class Fixture {
 public:
  // "llama_untied", "gpt2", ... Throws std::runtime_error when a file is missing or malformed.
  explicit Fixture(const std::string& name);

  const std::vector<Weight>& weights() const& { return weights_; }
  const std::vector<Weight>& weights() && = delete;  // of a temporary: would dangle in a range-for
  // "plain", "masked", "packed"; "bf16": plain with weights rounded to bfloat16, computed in f32.
  Case load_case(const std::string& name) const;
  // d(mean loss) / d(weight), in the weight's Hugging Face orientation.
  Sample gradient(const std::string& case_name, const std::string& weight) const;
  Sample final_weight(const std::string& weight) const;
  Training training() const;

  std::string config_json() const;
  // A model folder as users have it: config.json and model.safetensors (f32).
  void write_folder(const std::filesystem::path& folder) const;

 private:
  struct View {
    std::vector<std::int64_t> shape;
    std::size_t begin, bytes;  // in file_
  };
  template <class T>
  std::vector<T> read(const std::string& tensor) const;
  Sample sample(const std::string& tensor, const std::string& weight) const;

  std::filesystem::path folder_;
  std::vector<Weight> weights_;
  std::int64_t stride_, full_up_to_;
  std::vector<std::byte> file_;
  std::map<std::string, View> tensors_;
};

// Writes tensors as one f32 safetensors file; values[i] belongs to weights[i].
void write_safetensors(const std::filesystem::path& file, const std::vector<Weight>& weights,
                       const std::vector<std::vector<float>>& values);

}  // namespace drivetrain::golden
