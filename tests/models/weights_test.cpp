// Loading Hugging Face folders into models: names, tying, prefixes, buffers, missing tensors (cases CK-*).
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>

#include "kernels/cpu/cpu_device.h"
#include "models/hf_weights.h"
#include "models/transformer.h"
#include "runtime/comm/thread_comm.h"
#include "tests/models/golden.h"

namespace drivetrain {
namespace {

struct Contents {
  std::vector<golden::Weight> weights;
  std::vector<std::vector<float>> values;

  std::size_t index(const std::string& name) const {
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights[i].name == name) return i;
    throw std::invalid_argument(name);
  }
  void remove(const std::string& name) {
    const auto i = static_cast<std::ptrdiff_t>(index(name));
    weights.erase(weights.begin() + i);
    values.erase(values.begin() + i);
  }
  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> v) {
    golden::Weight w = weights.front();
    w.name = name;
    w.shape = std::move(shape);
    weights.push_back(w);
    values.push_back(std::move(v));
  }
};

class Weights : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("weights_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& fixture, const std::function<void(Contents&)>& change) {
    const golden::Fixture f(fixture);
    Contents c{f.weights(), {}};
    for (const golden::Weight& w : c.weights) c.values.push_back(w.values());
    change(c);
    std::ofstream(folder_ / "config.json") << f.config_json();
    golden::write_safetensors(folder_ / "model.safetensors", c.weights, c.values);
  }
  void edit_config(const std::string& pattern, const std::string& replacement) {
    std::ifstream in(folder_ / "config.json");
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::string changed = std::regex_replace(text, std::regex(pattern), replacement);
    ASSERT_NE(changed, text);
    std::ofstream(folder_ / "config.json") << changed;
  }
  std::vector<float> logits(int tp = 1) {
    std::vector<float> out;
    run_thread_ranks(tp, [&](Communicator& world) {
      const auto device = make_cpu_device(1);
      Mesh mesh(world.split(0, world.rank()), {1, tp});
      TransformerOptions options;
      options.config = read_hf_config(folder_);
      options.compute = DType::kF32;
      options.use = TransformerOptions::Use::kInference;
      Transformer model(*device, mesh, options);
      model.store().materialize(*device, mesh, {DType::kF32});
      load_model_weights(model.store(), mesh, options.config, folder_);
      device->ops().weights_changed();
      Arena arena(mesh.world().symmetric_buffer(*device, 4 << 20));
      const std::vector<std::int32_t> ids{5, 17, 96, 0, 33, 5, 80};
      const auto result = model.logits(ids, nullptr, Model::Rows::kAll, arena);
      if (world.rank() == 0) out = result;
    });
    return out;
  }
  std::string refusal() {
    try {
      logits();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance);
}

TEST_F(Weights, TiedModelNeedsNoHead) {  // CK-06
  write("qwen2_tied", [](Contents&) {});
  const auto tied = logits();
  EXPECT_GT(*std::max_element(tied.begin(), tied.end()), 0.1f);
  // The same weights with the head spelled out, untied: logits = hidden x embedding^T.
  write("qwen2_tied", [](Contents& c) {
    const auto i = c.index("model.embed_tokens.weight");
    c.add("lm_head.weight", c.weights[i].shape, c.values[i]);
  });
  EXPECT_EQ(logits(), tied);  // an identical copy loads quietly
  edit_config("\"tie_word_embeddings\": *true", "\"tie_word_embeddings\": false");
  EXPECT_EQ(logits(), tied);
}

TEST_F(Weights, TiedModelWithAnotherHeadIsRefused) {  // CK-07
  write("llama_tied", [](Contents& c) {
    const auto i = c.index("model.embed_tokens.weight");
    auto head = c.values[i];
    for (float& x : head) x += 0.1f;
    c.add("lm_head.weight", c.weights[i].shape, head);
  });
  const std::string message = refusal();
  EXPECT_NE(message.find("lm_head.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("tie_word_embeddings"), std::string::npos) << message;
}

TEST_F(Weights, Gpt2PrefixAndBuffers) {  // CK-11
  std::vector<std::vector<float>> results;
  for (const bool prefix : {true, false})
    for (const bool buffers : {true, false}) {
      write("gpt2", [&](Contents& c) {
        if (buffers)
          for (const char* layer : {"0", "1"}) {
            c.add(std::string("transformer.h.") + layer + ".attn.bias", {1, 1, 4, 4}, std::vector<float>(16, 1.0f));
            c.add(std::string("transformer.h.") + layer + ".attn.masked_bias", {1}, {-1e4f});
          }
        if (!prefix)
          for (golden::Weight& w : c.weights) w.name = w.name.substr(std::string("transformer.").size());
      });
      results.push_back(logits());
    }
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST_F(Weights, EveryMissingTensorIsNamed) {  // CK-13
  write("llama_untied", [](Contents& c) {
    c.remove("model.layers.1.mlp.up_proj.weight");
    c.remove("model.norm.weight");
  });
  const std::string message = refusal();
  EXPECT_NE(message.find("model.layers.1.mlp.up_proj.weight"), std::string::npos) << message;
  EXPECT_NE(message.find("model.norm.weight"), std::string::npos) << message;
}

TEST_F(Weights, UntiedModelNeedsItsHead) {
  write("llama_untied", [](Contents& c) { c.remove("lm_head.weight"); });
  EXPECT_NE(refusal().find("lm_head.weight"), std::string::npos);
}

TEST_F(Weights, Qwen2BiasesAreUsedAndRequired) {  // CK-27
  write("qwen2_untied", [](Contents& c) {
    for (std::size_t i = 0; i < c.weights.size(); ++i)
      if (c.weights[i].name.ends_with("v_proj.bias")) std::fill(c.values[i].begin(), c.values[i].end(), 0.5f);
  });
  const auto with = logits();
  write("qwen2_untied", [](Contents& c) {
    for (std::size_t i = 0; i < c.weights.size(); ++i)
      if (c.weights[i].name.ends_with("v_proj.bias")) std::fill(c.values[i].begin(), c.values[i].end(), 0.0f);
  });
  EXPECT_NE(logits(), with);
  write("qwen2_untied", [](Contents& c) { c.remove("model.layers.0.self_attn.k_proj.bias"); });
  EXPECT_NE(refusal().find("model.layers.0.self_attn.k_proj.bias"), std::string::npos);
}

TEST_F(Weights, VocabularyNeedNotDivide) {  // CK-04, logits: 97 rows over 2 and 4 ranks
  write("gpt2", [](Contents&) {});
  const auto one = logits(1);
  for (const int tp : {2, 4}) expect_near(logits(tp), one, 1e-5f);
}

TEST_F(Weights, WrongShapeNamesBoth) {
  write("llama_untied", [](Contents& c) {
    const auto i = c.index("model.norm.weight");
    c.weights[i].shape = {31};
    c.values[i].resize(31);
  });
  const std::string message = refusal();
  EXPECT_NE(message.find("31"), std::string::npos) << message;
  EXPECT_NE(message.find("32"), std::string::npos) << message;
}

}  // namespace
}  // namespace drivetrain
