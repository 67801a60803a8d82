// Damaged and random input: readers either understand it or throw Error; nothing else may happen. Seeded and bounded.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "runtime/data/jsonl_reader.h"
#include "runtime/data/tokenizer.h"
#include "runtime/data/tokenizer_spec.h"
#include "runtime/data/utf8.h"
#include "tests/runtime/data/data_test_files.h"

namespace drivetrain {
namespace {

using nlohmann::json;
using test::Folder;

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) {
  return random() % n;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::filesystem::path kGolden = std::filesystem::path(DRIVETRAIN_GOLDEN_FOLDER) / "tokenizers";

void damage(std::string& text, Random& random) {
  const std::size_t edits = 1 + below(random, 4);
  for (std::size_t i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = below(random, text.size());
    switch (below(random, 4)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + below(random, 40));
        break;
      case 2:
        text.insert(at, text.substr(below(random, text.size()), 1 + below(random, 40)));
        break;
      default:
        text.insert(at, 1, "\"{}[]:,\\\n\0-9eu"[below(random, 15)]);
    }
  }
}

// Puts a value of another kind somewhere into the document.
void replace_somewhere(json& document, Random& random) {
  const json values[] = {
      nullptr, true, -1, 1.5, 4294967296, "", "\u00e9", json::array(), json::object(), json::array({1, "a"})};
  json* node = &document;
  while (node->is_structured() && !node->empty() && below(random, 5) != 0) {
    auto child = node->begin();
    std::advance(child, static_cast<std::ptrdiff_t>(below(random, node->size())));
    node = &*child;
  }
  *node = values[below(random, std::size(values))];
}

// True when the file loaded; then it must also encode.
bool load_and_use(const Folder& folder, const std::string& text) {
  const auto path = folder.write("tokenizer.json", text);
  try {
    const auto tokenizer = load_tokenizer(path);
    for (const std::int32_t id : tokenizer->encode("Hello  w\u00f6rld 123\n<|endoftext|> x"))
      tokenizer->token_text(id);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(DataFuzz, DamagedTokenizerFilesLoadOrThrowError) {
  const Folder folder;
  Random random(1);
  int loaded = 0, refused = 0;
  for (const char* family : {"gpt2", "llama3", "qwen2", "smollm2"}) {
    json whole = json::parse(read_text(kGolden / family / "tokenizer.json"));
    json& merges = whole["model"]["merges"];  // short, so that the interesting parts are hit
    merges.erase(merges.begin() + 20, merges.end());
    for (int i = 0; i < 40; ++i) {
      std::string text = whole.dump();
      damage(text, random);
      (load_and_use(folder, text) ? loaded : refused) += 1;
      json document = whole;
      replace_somewhere(document, random);
      (load_and_use(folder, document.dump()) ? loaded : refused) += 1;
    }
  }
  EXPECT_GT(loaded, 30);
  EXPECT_GT(refused, 30);
}

TEST(DataFuzz, RandomBytesEncodeAndDecodeToTheirValidText) {
  Random random(2);
  std::vector<std::unique_ptr<Tokenizer>> tokenizers;
  for (const char* family : {"gpt2", "llama3", "smollm2"}) tokenizers.push_back(load_tokenizer(kGolden / family));
  const std::vector<std::string> parts{" ",
                                       "\n",
                                       "\r\n",
                                       "'s",
                                       "12",
                                       "ab",
                                       "\xC3\xA9",
                                       "\xE6\x97\xA5",
                                       "\xF0\x9F\x98\x80",
                                       "<|",
                                       "<|im_end|>",
                                       "<|endoftext|>",
                                       std::string(1, '\0'),
                                       "\xE2\x80\xA8"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (std::size_t n = below(random, 40); n > 0; --n) {
      if (below(random, 3) == 0) {
        text += static_cast<char>(random());
      } else {
        text += parts[below(random, parts.size())];
      }
    }
    std::string storage;
    const std::string valid(valid_utf8(text, storage));
    for (const auto& tokenizer : tokenizers) ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), valid);
  }
}

TEST(DataFuzz, DamagedRecordsAreReadSkippedOrNamed) {
  const Folder folder;
  Random random(3);
  const std::string whole =
      "\xEF\xBB\xBF{\"text\":\"one \\u00e9 "
      "\\ud83d\\ude00\"}\r\n{\"id\":[1,{\"a\":null}],\"text\":\"two\"}\n\n{\"text\":\"\"}\n";
  std::int64_t read = 0, skipped = 0, stopped = 0;
  const JsonlSink sink{[&](std::string_view, std::int64_t) { ++read; }, [&](std::int64_t) { ++skipped; }};
  for (int i = 0; i < 100; ++i) {
    std::string one, many;
    for (int copy = 0; copy < 20; ++copy) {  // few files, many records: the file system is the slow part
      one = whole;
      damage(one, random);
      many += one;
    }
    for (const auto& [text, on_bad] : {std::pair{many, OnBadRecord::kSkip}, std::pair{one, OnBadRecord::kStop}}) {
      const auto path = folder.write("a.jsonl", text);
      try {
        MappedFile file(path);
        read_jsonl(file, path, on_bad, sink);
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kData);
        ++stopped;
      }
    }
  }
  EXPECT_GT(read, 1000);
  EXPECT_GT(skipped, 100);
  EXPECT_GT(stopped, 20);
}

TEST(DataFuzz, DeepNestingIsNoStackOverflow) {
  const Folder folder;
  const std::string open(200000, '['), close(200000, ']');
  const auto in_place_of = [&](const std::string& what) {
    std::string text = read_text(kGolden / "gpt2" / "tokenizer.json");
    const std::size_t at = text.find(what);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, what.size(), what.substr(0, what.find(':') + 1) + open + close);
  };
  EXPECT_FALSE(load_and_use(folder, open));
  for (const char* what : {"\"normalizer\":null", "\"!\":0", "\"dropout\":null", "\"type\":\"BPE\"", "\"id\":600"}) {
    load_and_use(folder, in_place_of(what));  // a field that takes no part may hold anything
  }
  std::string sequences;
  for (int i = 0; i < 20000; ++i) sequences += "{\"type\":\"Sequence\",\"normalizers\":[";
  EXPECT_FALSE(load_and_use(folder, "{\"normalizer\":" + sequences));
  for (int i = 0; i < 20000; ++i) sequences += "]}";
  EXPECT_FALSE(load_and_use(folder, "{\"normalizer\":" + sequences + "}"));
  folder.write("config.json", "{\"eos_token_id\":" + open + close + "}");
  EXPECT_TRUE(load_and_use(folder, read_text(kGolden / "gpt2" / "tokenizer.json")));
}

}  // namespace
}  // namespace drivetrain
