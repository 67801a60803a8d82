// Reading config.json: the rope, tying, bias and window rules of the handed cases, and the round trip through export.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "kernels/error.h"
#include "models/model_config.h"
#include "models/rope.h"

namespace drivetrain {
namespace {

class HfConfig : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("hf_config_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  ModelConfig read(const std::string& json) {
    std::ofstream(folder_ / "config.json") << json;
    return read_hf_config(folder_);
  }
  ModelConfig llama(const std::string& extra) {
    return read(R"({"model_type":"llama","hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,
      "num_key_value_heads":2,"intermediate_size":64,"vocab_size":97,"max_position_embeddings":64)" +
                extra + "}");
  }
  std::string refusal(const std::string& extra) {
    try {
      llama(extra);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      return e.what();
    }
    return "";
  }
  std::filesystem::path folder_;
};

TEST_F(HfConfig, RopeThetaInsideRopeParameters) {  // CK-19
  const ModelConfig c = llama(R"(,"rope_parameters":{"rope_theta":1e6,"rope_type":"default"})");
  EXPECT_NEAR(rope_frequencies(c)[1], 0.0316228, 1e-7);
  EXPECT_EQ(rope_frequencies(c), rope_frequencies(llama(R"(,"rope_theta":1e6)")));
}

TEST_F(HfConfig, Llama3Frequencies) {  // CK-21
  const ModelConfig c = llama(R"(,"head_dim":64,"rope_theta":5e5,"rope_scaling":{"rope_type":"llama3","factor":32,
      "low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":8192})");
  const auto f = rope_frequencies(c);
  const std::pair<std::size_t, double> expected[] = {{14, 3.211446e-3}, {15, 1.290548e-3}, {16, 4.295568e-4},
                                                     {17, 9.708288e-5}, {18, 1.946164e-5}, {31, 9.418307e-8}};
  for (const auto& [i, value] : expected) EXPECT_NEAR(f[i], value, value * 1e-6) << i;
}

TEST_F(HfConfig, OldAndNewRopeTypeKeys) {  // CK-23
  const auto old_key = rope_frequencies(llama(R"(,"rope_scaling":{"type":"linear","factor":2})"));
  EXPECT_EQ(old_key, rope_frequencies(llama(R"(,"rope_scaling":{"rope_type":"linear","factor":2})")));
  EXPECT_EQ(old_key, rope_frequencies(llama(R"(,"rope_scaling":{"type":"linear","rope_type":"linear","factor":2})")));
  const auto plain = rope_frequencies(llama(""));
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_DOUBLE_EQ(8 * old_key[i], 4 * plain[i]);
  EXPECT_NE(refusal(R"(,"rope_scaling":{"type":"linear","rope_type":"llama3","factor":2})"), "");
}

TEST_F(HfConfig, UnknownRopeTypeIsRefused) {  // CK-25
  for (const char* type : {"longrope", "foo"})
    EXPECT_NE(refusal(std::string(R"(,"rope_scaling":{"rope_type":")") + type + R"(","factor":2})").find(type),
              std::string::npos);
}

TEST_F(HfConfig, SlidingWindowNeedsItsFlag) {  // CK-29
  const std::string head = R"({"model_type":"qwen2","hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,
      "num_key_value_heads":2,"intermediate_size":64,"vocab_size":97,"sliding_window":4,"max_window_layers":1,)";
  EXPECT_EQ(read(head + R"("use_sliding_window":false})").window, 0);
  const ModelConfig on = read(head + R"("use_sliding_window":true})");
  EXPECT_EQ(on.window, 4);
  EXPECT_EQ(on.window_from_layer, 1);
  EXPECT_TRUE(on.qkv_bias);  // CK-27: no key announces the biases
  EXPECT_FALSE(on.output_bias);
}

TEST_F(HfConfig, FaultsNameTheKey) {
  EXPECT_NE(refusal(R"(,"hidden_act":"relu")").find("hidden_act"), std::string::npos);
  EXPECT_NE(refusal(R"(,"head_dim":7)").find("head_dim"), std::string::npos);
  EXPECT_NE(refusal(R"(,"rope_scaling":{"rope_type":"linear"})").find("factor"), std::string::npos);
  EXPECT_THROW(read("{"), Error);
  EXPECT_THROW(read("[]"), Error);
  EXPECT_THROW(read(R"({"model_type":"mamba"})"), Error);
  EXPECT_THROW(read(R"({"model_type":"llama"})"), Error);
  EXPECT_THROW(read(R"({"model_type":"llama","hidden_size":"big"})"), Error);
}

TEST_F(HfConfig, ExportReadsBack) {
  for (const std::string& name : preset_names()) {
    const ModelConfig c = preset(name);
    const ModelConfig back = read(hf_config_json(c, "bfloat16"));
    EXPECT_EQ(back.family, c.family) << name;
    EXPECT_EQ(back.heads, c.heads) << name;
    EXPECT_EQ(back.head_dim, c.head_dim) << name;
    EXPECT_EQ(back.ffn, c.ffn) << name;
    EXPECT_EQ(back.tied, c.tied) << name;
    EXPECT_EQ(back.qkv_bias, c.qkv_bias) << name;
    EXPECT_EQ(back.positions, c.positions) << name;
    EXPECT_EQ(back.norm_eps, c.norm_eps) << name;
    EXPECT_EQ(rope_frequencies(back), rope_frequencies(c)) << name;
  }
}

TEST(CheckTensorParallel, NamesFieldAndTp) {  // CK-01: refused, not replicated
  ModelConfig c = preset("llama-tiny");
  c.kv_heads = 2;
  try {
    check_tensor_parallel(c, 4);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("num_key_value_heads = 2"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("tp = 4"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace drivetrain
