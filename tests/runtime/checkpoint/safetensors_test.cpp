#include "runtime/checkpoint/safetensors.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <ctime>
#include <random>

#include "runtime/checkpoint/safetensors_header.h"
#include "tests/runtime/checkpoint/test_files.h"

namespace drivetrain {
namespace {

using test::error_text;
using test::length_prefix;
using test::safetensors_bytes;
using test::TemporaryFolder;
using test::write_bytes;

class SafetensorsTest : public ::testing::Test {
 protected:
  // The error that opening a file of these bytes gives; always kData and always naming the file.
  std::string refusal(const std::string& bytes) {
    write_bytes(file_, bytes);
    const std::string text = error_text(ErrorKind::kData, [&] { SafetensorsFile opened(file_); });
    EXPECT_CONTAINS(text, file_.string());
    return text;
  }
  std::string refusal(const std::string& json, const std::string& data) {
    return refusal(safetensors_bytes(json, data));
  }
  static std::uint64_t length_of(const std::string& bytes) {
    std::uint64_t n = 0;
    std::memcpy(&n, bytes.data(), sizeof(n));
    return n;
  }
  // Opens a file of these bytes and reads every tensor, or gets a kData.
  void read_all(const std::string& bytes) {
    write_bytes(file_, bytes);
    try {
      const auto source = open_tensor_files({file_});
      for (const std::string& name : source->names()) {
        std::vector<float> values(static_cast<std::size_t>(source->find(name)->count()));
        source->read(name, 0, values);
      }
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::kData) << e.what();
    }
  }
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "x.safetensors";
};

TEST_F(SafetensorsTest, ReadsWhatTheFormatAllows) {
  write_bytes(file_, safetensors_bytes(R"({"__metadata__":{"format":"pt"},)"
                                       R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},)"
                                       R"("a":{"dtype":"I8","shape":[2],"data_offsets":[0,2]},)"
                                       R"("scalar":{"dtype":"U8","shape":[],"data_offsets":[10,11]}}   )",
                                       "0123456789z"));
  const SafetensorsFile file(file_);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  const TensorEntry& b = file.tensors().at("b");
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(b.count(), 2);
  EXPECT_EQ(b.end - b.begin, 8u);
  EXPECT_EQ(std::memcmp(file.bytes("b").data(), "23456789", 8), 0);
  EXPECT_EQ(file.bytes("scalar").size(), 1u);
  EXPECT_EQ(file.tensors().at("scalar").count(), 1);
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { file.bytes("c"); }), "'c'");
}

TEST_F(SafetensorsTest, EmptyTensorsCK42) {
  write_bytes(file_, safetensors_bytes(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                       R"("e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},)"
                                       R"("f":{"dtype":"F32","shape":[0,9],"data_offsets":[0,0]}})",
                                       "1234"));
  const SafetensorsFile file(file_);
  EXPECT_EQ(file.tensors().at("e").count(), 0);
  EXPECT_TRUE(file.bytes("e").empty());
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,0]}})", ""), "takes 4 bytes");
}

TEST_F(SafetensorsTest, TruncatedFilesCK36) {
  const std::string whole =
      safetensors_bytes(R"({"a":{"dtype":"F32","shape":[8],"data_offsets":[0,32]}})", std::string(32, 'x'));
  write_bytes(file_, whole);
  EXPECT_EQ(SafetensorsFile(file_).tensors().size(), 1u);
  EXPECT_CONTAINS(refusal(whole.substr(0, whole.size() - 10)), "cut off");
  EXPECT_CONTAINS(refusal(whole.substr(0, 30)), "cut off");
  EXPECT_CONTAINS(refusal(""), "only 0 bytes");
  EXPECT_CONTAINS(refusal(whole.substr(0, 7)), "only 7 bytes");
  EXPECT_CONTAINS(refusal(whole + "y"), "belong to no tensor");
  for (std::size_t n = 0; n < whole.size(); ++n) refusal(whole.substr(0, n));
}

TEST_F(SafetensorsTest, HugeHeaderLengthsCK37) {
  const std::string body(1016, ' ');
  const std::clock_t begin = std::clock();  // of this process alone: the machine may be busy
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_CONTAINS(refusal(length_prefix((std::uint64_t{1} << 63) - 1) + body), "limit is 100000000");
  EXPECT_CONTAINS(refusal(length_prefix(~std::uint64_t{0}) + body), "limit is 100000000");
  EXPECT_CONTAINS(refusal(length_prefix(1025) + body), "only 1024 bytes");
  EXPECT_CONTAINS(refusal(length_prefix(1017) + body), "only 1024 bytes");
  EXPECT_CONTAINS(refusal(length_prefix(200'000'000) + body), "limit is 100000000");
  EXPECT_CONTAINS(refusal(length_prefix(99'999'999) + body), "only 1024 bytes");
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20 * 1024);  // KiB
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC);
}

TEST_F(SafetensorsTest, ShapesAgainstRangesCK40) {
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[4,4],"data_offsets":[0,68]}})", std::string(68, 'x')),
                  "takes 64 bytes");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[4,4],"data_offsets":[0,60]}})", std::string(60, 'x')),
                  "takes 64 bytes");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[8589934592,8589934592],"data_offsets":[0,4]}})", "1234"),
                  "overflows");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}})", ""),
                  "overflows");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234"), "negative");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}})", "1234"), "negative");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", "1234"),
                  "too large");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4]}})", "1234"),
                  "no 64-bit integer");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", "1234"),
                  "no 64-bit integer");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "1234"),
                  "data_offsets [4, 0]");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0]}})", "1234"),
                  "data_offsets");
  EXPECT_CONTAINS(
      refusal(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
          "123"),
      "overlap");
  EXPECT_CONTAINS(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
          "123"),
      "holes");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"), "holes");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", "123"), "cut off");
}

TEST_F(SafetensorsTest, HeadersThatAreNotTheFormat) {
  const std::string good = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_CONTAINS(refusal("\xef\xbb\xbf" + good, "1"), "does not begin with '{'");
  EXPECT_CONTAINS(refusal(" " + good, "1"), "does not begin with '{'");
  EXPECT_CONTAINS(refusal(good + std::string(1, '\0'), "1"), "NUL");
  EXPECT_CONTAINS(refusal(good + "x", "1"), "not valid JSON");
  EXPECT_CONTAINS(refusal(good + "{}", "1"), "not valid JSON");
  EXPECT_CONTAINS(refusal(std::string("{\"a\xff\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"), "1"),
                  "not valid JSON");
  EXPECT_CONTAINS(
      refusal(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          "1"),
      "appears twice");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}})", "1"), "twice");
  EXPECT_CONTAINS(refusal(R"({"__metadata__":{},"__metadata__":{}})", ""), "appears twice");
  EXPECT_CONTAINS(refusal(R"({"__metadata__":{"a":1}})", ""), "an integer");
  EXPECT_CONTAINS(refusal(R"({"__metadata__":{"a":{}}})", ""), "an object");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", "1"),
                  "'F8_E4M3', which is not supported");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", "1"), "'more'");
  EXPECT_CONTAINS(refusal(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", "1"), "no dtype");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", "1"), "no shape");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1]}})", "1"), "no data_offsets");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "1"), "no data_offsets");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", "1"), "an integer");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "1"), "an array");
  EXPECT_CONTAINS(refusal(R"({"a":{"dtype":"U8","shape":[null],"data_offsets":[0,1]}})", "1"), "null");
  EXPECT_CONTAINS(refusal(R"({"a":3})", ""), "an integer at 'a'");
  EXPECT_CONTAINS(refusal(R"({"a":[]})", ""), "an array at 'a'");
  EXPECT_CONTAINS(refusal("{", ""), "only 9 bytes");
  refusal("{" + std::string(100, '['), "");
}

TEST_F(SafetensorsTest, GitLfsPointersAreNamed) {
  EXPECT_CONTAINS(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), "git lfs pull");
}

TEST_F(SafetensorsTest, DeepNestingIsRefusedAtOnce) {
  const std::string json = "{\"a\":" + std::string(4'000'000, '[');
  EXPECT_CONTAINS(refusal(json, ""), "an array at 'a'");
}

TEST_F(SafetensorsTest, OnlyRegularFiles) {
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { SafetensorsFile f(folder_ / "absent"); }), "absent");
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { SafetensorsFile f(folder_.path()); }), "not a regular file");
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { SafetensorsFile f(file_); }), "not a regular file");
}

TEST_F(SafetensorsTest, WritesWhatItReads) {
  const std::string data = "abcdefgh12";
  SafetensorsWriter writer(
      file_,
      {{"x\"\xc3\xa9", FileDType::kF32, {2, 1}}, {"none", FileDType::kF64, {0, 3}}, {"h", FileDType::kBF16, {}}},
      {{"format", "pt"}});
  const auto bytes = std::as_bytes(std::span(data));
  writer.append(bytes.first(3));
  writer.append(bytes.subspan(3));
  const std::string hash = writer.finish();
  EXPECT_EQ(hash.size(), 32u);
  const SafetensorsFile file(file_);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.tensors().at("x\"\xc3\xa9").shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(file.tensors().at("x\"\xc3\xa9").begin % 64, 0u);
  EXPECT_EQ(std::memcmp(file.bytes("x\"\xc3\xa9").data(), "abcdefgh", 8), 0);
  EXPECT_EQ(std::memcmp(file.bytes("h").data(), "12", 2), 0);
  EXPECT_EQ(file.tensors().at("none").count(), 0);
}

TEST_F(SafetensorsTest, WriterRefusesWhatIsNotDeclared) {
  const std::vector<SafetensorsWriter::Declared> twice{{"a", FileDType::kU8, {1}}, {"a", FileDType::kU8, {1}}};
  EXPECT_CONTAINS(error_text(ErrorKind::kLogic, [&] { SafetensorsWriter w(file_, twice, {}); }), "'a'");
  SafetensorsWriter writer(file_, {{"a", FileDType::kU8, {2}}}, {});
  const std::vector<std::byte> three(3), one(1);
  EXPECT_CONTAINS(error_text(ErrorKind::kLogic, [&] { writer.append(three); }), "more bytes");
  writer.append(one);
  EXPECT_CONTAINS(error_text(ErrorKind::kLogic, [&] { writer.finish(); }), "written of");
}

// The parser must end every damaged file with an Error or a reading inside the file; the sanitizers watch the rest.
TEST_F(SafetensorsTest, FuzzedHeaders) {
  const std::string valid =
      safetensors_bytes(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                        R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})",
                        std::string(32, 'x'));
  const std::string alphabet = "{}[]\",:0123456789-.eE\\u\x00\xff\xc3 abFIU";
  std::mt19937_64 random(7);
  int opened = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = valid;
    const auto mutations = 1 + random() % 4;
    for (std::uint64_t m = 0; m < mutations; ++m) {
      const std::size_t at = random() % 4 == 0 ? random() % 8 : random() % bytes.size();
      switch (random() % 5) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        case 3:
          bytes.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
          break;
      }
      if (bytes.size() < 16) bytes = valid;
    }
    if (random() % 2 == 0)
      bytes.replace(0, 8, length_prefix(bytes.size() - 8 - 32));  // else damage stops at the length
    const std::uint64_t header_bytes = std::min<std::uint64_t>(length_of(bytes), bytes.size() - 8);
    try {
      const auto header =
          parse_safetensors_header(std::string_view(bytes).substr(8, header_bytes), bytes.size(), "x");
      for (const auto& [name, entry] : header.tensors) ASSERT_LE(entry.end, bytes.size());
      ++opened;
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::kData) << e.what();
    }
    if (round % 16 == 0) read_all(bytes);
  }
  EXPECT_GT(opened, 20);
  EXPECT_LT(opened, 3000);
}

}  // namespace
}  // namespace drivetrain
