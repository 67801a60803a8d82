#include "runtime/data/tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/data/regex.h"
#include "runtime/data/utf8.h"
#include "tests/runtime/data/data_test_files.h"

namespace drivetrain {
namespace {

using nlohmann::json;
using test::Folder;
using test::Ints;
using test::message_of;

TEST(ByteTokenizer, IdsAreBytesAndTheEndTokenIsFound) {
  const auto tokenizer = make_byte_tokenizer();
  EXPECT_EQ(tokenizer->encode("a\xFF<|endoftext|>"), (Ints{'a', 255, 256}));
  EXPECT_EQ(tokenizer->decode({'a', 255, 256}), "a\xFF<|endoftext|>");
  EXPECT_EQ(tokenizer->encode(""), Ints{});
  EXPECT_EQ(tokenizer->vocab_size(), 257);
  EXPECT_EQ(tokenizer->end_of_text(), 256);
  EXPECT_THROW(tokenizer->decode({257}), Error);
  EXPECT_THROW(tokenizer->decode({-1}), Error);
}

TEST(ValidUtf8, ReplacesWhatPythonReplaces) {
  std::string storage;
  const auto fixed = [&](std::string_view text) { return std::string(valid_utf8(text, storage)); };
  const std::string bad = "\xEF\xBF\xBD";
  const std::string_view good = "a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80";
  EXPECT_EQ(valid_utf8(good, storage).data(), good.data());
  EXPECT_EQ(fixed("a\xFFz"), "a" + bad + "z");
  EXPECT_EQ(fixed("\xE6\x97"), bad);         // cut short at the end: one
  EXPECT_EQ(fixed("\xE6\x97z"), bad + "z");  // cut short: one
  EXPECT_EQ(fixed("\xF0\x9F\x98z"), bad + "z");
  EXPECT_EQ(fixed("\xC0\xAF"), bad + bad);  // overlong
  EXPECT_EQ(fixed("\xE0\x80\x80"), bad + bad + bad);
  EXPECT_EQ(fixed("\xED\xA0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(fixed("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
  EXPECT_EQ(fixed("\x80\x80"), bad + bad);
}

TEST(Regex, FindsLeftmostAndRefusesWhatIsReadDifferently) {
  Regex::Matcher matcher;
  const Regex digits(R"(\p{N}{1,3}|\s+(?!\S))");
  const auto match = digits.find("ab 12345", 0, matcher);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->begin, 3u);
  EXPECT_EQ(match->end, 6u);
  EXPECT_FALSE(digits.find("abc", 0, matcher));
  EXPECT_TRUE(Regex(R"(\s)").find("\u0085", 0, matcher));
  EXPECT_FALSE(Regex(R"(\s)").find("\u180e", 0, matcher));  // no white space since Unicode 6.3
  EXPECT_TRUE(Regex(R"((?i:'s))").find("'S", 0, matcher));
  EXPECT_TRUE(Regex(Regex::escape("a.b*")).find("xa.b*", 0, matcher));
  EXPECT_FALSE(Regex(Regex::escape("a.b*")).find("xazb", 0, matcher));
  EXPECT_TRUE(Regex(R"(\u00e9|a{|\p{^L}{2})").find("a{", 0, matcher));
  for (const char* pattern :
       {R"(\h)", R"(\w+)", R"(a\b)", "[[:alpha:]]", "[a&&b]", "[a[b]]",      "(?<n>a)", "(?x)a", "a(?i)b", "a{,3}",
        "a{2}+", "a{2}?",  "a*",     "(",           "[a",     R"(\p{Nope})", R"(\xe9)", "",      R"(\1)",  R"(\)"}) {
    EXPECT_THROW(Regex{pattern}, Error) << pattern;
  }
}

// The smallest file that loads: two bytes and one merge.
json tiny() {
  return json::parse(R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
    "post_processor":null,"decoder":null,
    "model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,
             "fuse_unk":false,"byte_fallback":false,"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})");
}

std::string fault(const Folder& folder, const json& file) {
  const auto path = folder.write("tokenizer.json", file.dump());
  return message_of([&] { load_tokenizer(path); });
}

TEST(TokenizerFile, LoadsTheSmallest) {
  const Folder folder;
  const auto tokenizer = load_tokenizer(folder.write("tokenizer.json", tiny().dump()));
  EXPECT_EQ(tokenizer->encode("abba"), (Ints{2, 1, 0}));
  EXPECT_EQ(tokenizer->vocab_size(), 3);
  EXPECT_EQ(tokenizer->end_of_text(), -1);
  EXPECT_THROW(tokenizer->decode({3}), Error);
}

TEST(TokenizerFile, NamesWhatItDoesNotSupport) {
  const Folder folder;
  const std::vector<std::tuple<const char*, json, const char*>> changes{
      {"/model/type", "Unigram", "model: \"Unigram\" is not supported"},
      {"/model/byte_fallback", true, "byte_fallback is not supported"},
      {"/model/dropout", 0.1, "dropout is not supported"},
      {"/model/end_of_word_suffix", "</w>", "end_of_word_suffix is not supported"},
      {"/model/continuing_subword_prefix", "##", "continuing_subword_prefix is not supported"},
      {"/model/merges", json::array({"a  b"}), "model.merges[0] must be"},
      {"/model/merges", json::array({"a c"}), "merge 1: token 'ac' is not in the vocabulary"},
      {"/model/merges", json::array({json::array({"a", "b", "c"})}), "model.merges[0] must be"},
      {"/model/vocab/b", -1, "model.vocab[\"b\"] must be a token id"},
      {"/model/vocab/b", 1.5, "model.vocab[\"b\"] must be a token id"},
      {"/model/vocab/b", 4294967296, "model.vocab[\"b\"] must be a token id"},
      {"/model/vocab/b", 2, "share id 2"},
      {"/model/unk_token", "<unk>", "unk_token: token '<unk>' is not in the vocabulary"},
      {"/normalizer", {{"type", "Replace"}}, "normalizer: \"Replace\" is not supported"},
      {"/normalizer", "NFC", "normalizer must be an object"},
      {"/normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "Strip"}}}}},
       "normalizer.normalizers[0]: \"Strip\""},
      {"/pre_tokenizer", nullptr, "only byte-level BPE"},
      {"/pre_tokenizer", {{"type", "Metaspace"}}, "pre_tokenizer: \"Metaspace\" is not supported"},
      {"/pre_tokenizer", {{"type", "Digits"}, {"individual_digits", true}}, "no ByteLevel"},
      {"/pre_tokenizer/add_prefix_space", 1, "pre_tokenizer.add_prefix_space must be true or false"},
      {"/pre_tokenizer", json::object(), "pre_tokenizer lacks \"type\""},
      {"/added_tokens", json::array({{{"id", 3}, {"content", "x"}}}), "added_tokens[0] lacks \"single_word\""},
      {"/added_tokens", 5, "added_tokens must be an array"},
      {"/model", json::array(), "model must be an object"}};
  for (const auto& [path, value, expected] : changes) {
    json file = tiny();
    file[json::json_pointer(path)] = value;
    const std::string message = fault(folder, file);
    EXPECT_NE(message.find(expected), std::string::npos) << path << ": " << message;
    EXPECT_NE(message.find("tokenizer.json: "), std::string::npos) << message;
  }
  json bad_pattern = tiny();
  bad_pattern["pre_tokenizer"] = json::parse(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":
    {"Regex":"\\w+"},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false}]})");
  EXPECT_NE(fault(folder, bad_pattern).find("pattern '\\w+': '\\w' is not supported"), std::string::npos);
  bad_pattern["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Sideways";
  EXPECT_NE(fault(folder, bad_pattern).find("\"Sideways\" is not supported"), std::string::npos);
  const auto path = folder.write("tokenizer.json", "{\"model\":");
  EXPECT_NE(message_of([&] { load_tokenizer(path); }).find("not valid JSON"), std::string::npos);
  EXPECT_NE(message_of([&] { load_tokenizer(folder.path() / "none"); }).find("No such file"), std::string::npos);
}

// TK-15: the vocabulary ends at 97, an added token gets id 97, the model has 97 rows.
TEST(TokenizerFile, AnAddedTokenBeyondTheEmbeddingIsNamed) {
  const Folder folder;
  json file = tiny();
  json& vocab = file["model"]["vocab"];
  for (int i = 3; i < 97; ++i) vocab["filler" + std::to_string(i)] = i;
  file["added_tokens"] = json::array({{{"id", 97},
                                       {"content", "<pad>"},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}}});
  const auto tokenizer = load_tokenizer(folder.write("tokenizer.json", file.dump()));
  EXPECT_EQ(tokenizer->encode("a<pad>b"), (Ints{0, 97, 1}));
  auto options = folder.options({folder.write("d.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"ab<pad>b\"}\n")}, 4);
  options.vocab_rows = 98;
  EXPECT_NO_THROW(open_dataset(options, *tokenizer));
  options.vocab_rows = 97;
  const std::string message = message_of([&] { open_dataset(options, *tokenizer); });
  EXPECT_NE(message.find("d.jsonl:2: token '<pad>' has id 97, but the model's embedding has 97 rows"),
            std::string::npos)
      << message;
}

TEST(Tokenizer, HandsOutALongDocumentInPieces) {
  const Folder folder;
  const auto tokenizer = load_tokenizer(folder.write("tokenizer.json", tiny().dump()));
  std::size_t calls = 0, largest = 0;
  Ints all;
  std::string text;
  for (int i = 0; i < 300000; ++i) text += i % 3 ? "b" : "'a";  // "'" is unknown and dropped
  tokenizer->encode_to(text, [&](std::span<const std::int32_t> ids) {
    ++calls;
    largest = std::max(largest, ids.size());
    all.insert(all.end(), ids.begin(), ids.end());
  });
  EXPECT_EQ(all, tokenizer->encode(text));
  EXPECT_GT(calls, 1u);
}

}  // namespace
}  // namespace drivetrain
