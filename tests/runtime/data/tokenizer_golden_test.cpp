// The ids of Hugging Face tokenizers, from tests/golden/tokenizers (tools/reference/make_tokenizer_golden.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "runtime/data/tokenizer.h"
#include "tests/runtime/data/data_test_files.h"

namespace drivetrain {
namespace {

using nlohmann::json;
using test::Folder;
using test::Ints;

const std::filesystem::path kGolden = std::filesystem::path(DRIVETRAIN_GOLDEN_FOLDER) / "tokenizers";

json read_json(const std::filesystem::path& path) {
  return json::parse(std::ifstream(path));
}

void expect_ids(const Tokenizer& tokenizer, const json& ids) {
  const json texts = read_json(kGolden / "texts.json");
  ASSERT_EQ(texts.size(), ids.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto text = texts[i].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text), ids[i].get<Ints>()) << texts[i];
  }
}

class Family : public testing::TestWithParam<const char*> {};

TEST_P(Family, GivesTheIdsOfHuggingFace) {
  const auto tokenizer = load_tokenizer(kGolden / GetParam());
  expect_ids(*tokenizer, read_json(kGolden / GetParam() / "ids.json"));
}

TEST_P(Family, ManyThreadsEncodeAtOnce) {
  const auto tokenizer = load_tokenizer(kGolden / GetParam());
  const json ids = read_json(kGolden / GetParam() / "ids.json");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_ids(*tokenizer, ids); });
}

INSTANTIATE_TEST_SUITE_P(Golden, Family, testing::Values("gpt2", "llama3", "qwen2", "smollm2"),
                         [](const auto& family) { return family.param; });

TEST(TokenizerGolden, CornersOfTheFormatGiveTheIdsOfHuggingFace) {
  const Folder folder;
  for (const json& variant : read_json(kGolden / "variants.json")) {
    SCOPED_TRACE(variant["name"].get<std::string>());
    const json base = read_json(kGolden / variant["base"].get<std::string>() / "tokenizer.json");
    const auto file = folder.write("tokenizer.json", base.patch(variant["patch"]).dump());
    expect_ids(*load_tokenizer(file), variant["ids"]);
  }
}

TEST(TokenizerGolden, DecodeGivesTheTextBack) {
  for (const char* family : {"gpt2", "llama3", "smollm2"}) {  // qwen2 gives its normal form
    const auto tokenizer = load_tokenizer(kGolden / family);
    for (const json& text : read_json(kGolden / "texts.json")) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text.get<std::string>())), text.get<std::string>());
    }
  }
}

// TK-12
TEST(TokenizerGolden, NormalFormCountsForQwen2Only) {
  const auto qwen2 = load_tokenizer(kGolden / "qwen2"), gpt2 = load_tokenizer(kGolden / "gpt2");
  EXPECT_EQ(qwen2->encode("e\u0301"), qwen2->encode("\u00e9"));
  EXPECT_NE(gpt2->encode("e\u0301"), gpt2->encode("\u00e9"));
}

// TK-14: what cl100k-style patterns would cut otherwise
TEST(TokenizerGolden, Gpt2KeepsDigitRunsAndCaseOfContractions) {
  const auto gpt2 = load_tokenizer(kGolden / "gpt2");
  const auto pieces_equal = [&](const std::string& whole, const std::vector<std::string>& pieces) {
    Ints ids;
    for (const auto& piece : pieces) {
      const Ints part = gpt2->encode(piece);
      ids.insert(ids.end(), part.begin(), part.end());
    }
    EXPECT_EQ(gpt2->encode(whole), ids) << whole;
  };
  pieces_equal("don'T", {"don", "'", "T"});
  pieces_equal("don't", {"don", "'t"});
  pieces_equal("(abc", {"(", "abc"});
  pieces_equal("a\n\n b", {"a", "\n\n", " b"});
}

TEST(TokenizerGolden, EndOfTextIsTheEosOfTheFolder) {
  for (const auto& [family, eos] : {std::pair{"gpt2", "<|endoftext|>"},
                                    {"llama3", "<|end_of_text|>"},
                                    {"qwen2", "<|endoftext|>"},
                                    {"smollm2", "<|im_end|>"}}) {
    const auto tokenizer = load_tokenizer(kGolden / family);
    EXPECT_EQ(tokenizer->token_text(tokenizer->end_of_text()), eos);
  }
  const Folder folder;
  std::filesystem::copy(kGolden / "smollm2/tokenizer.json", folder.path() / "tokenizer.json");
  const auto by_name = load_tokenizer(folder.path());
  EXPECT_EQ(by_name->token_text(by_name->end_of_text()), "<|endoftext|>");
  folder.write("config.json", "{\"eos_token_id\":[7,8]}");
  EXPECT_EQ(load_tokenizer(folder.path())->end_of_text(), 7);
  folder.write("tokenizer_config.json", "{\"eos_token\":{\"content\":\"<|im_start|>\"}}");
  const auto by_object = load_tokenizer(folder.path());
  EXPECT_EQ(by_object->token_text(by_object->end_of_text()), "<|im_start|>");
  folder.write("tokenizer_config.json", "{\"eos_token\":\"<nope>\"}");
  EXPECT_THROW(load_tokenizer(folder.path()), Error);
}

TEST(TokenizerGolden, FingerprintFollowsWhatDecidesTheIds) {
  const Folder folder;
  std::filesystem::copy(kGolden / "smollm2/tokenizer.json", folder.path() / "tokenizer.json");
  const std::string same = load_tokenizer(folder.path())->fingerprint();
  EXPECT_EQ(load_tokenizer(folder.path() / "tokenizer.json")->fingerprint(), same);
  EXPECT_NE(load_tokenizer(kGolden / "smollm2")->fingerprint(), same);  // another eos
  EXPECT_NE(load_tokenizer(kGolden / "gpt2")->fingerprint(), same);
}

}  // namespace
}  // namespace drivetrain
