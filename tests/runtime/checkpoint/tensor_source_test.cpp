#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/checkpoint/test_files.h"

namespace drivetrain {
namespace {

using test::error_text;
using test::safetensors_bytes;
using test::TemporaryFolder;
using test::write_bytes;

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string one_tensor(const std::string& name, const std::string& dtype, std::size_t count,
                       const std::string& data) {
  return safetensors_bytes("{\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + std::to_string(count) +
                               "],\"data_offsets\":[0," + std::to_string(data.size()) + "]}}",
                           data);
}

class TensorSourceTest : public ::testing::Test {
 protected:
  template <class T>
  std::vector<float> converted(const std::string& dtype, const std::vector<T>& values) {
    write_bytes(folder_ / "model.safetensors", one_tensor("t", dtype, values.size(), raw(values)));
    std::vector<float> out(values.size());
    open_tensor_folder(folder_.path())->read("t", 0, out);
    return out;
  }
  std::string folder_error() {
    return error_text(ErrorKind::kData, [&] { open_tensor_folder(folder_.path()); });
  }
  void write_shards(const std::string& second_name) {
    write_bytes(folder_ / "m-1.safetensors", one_tensor("a", "U8", 2, "\x01\x02"));
    write_bytes(folder_ / "m-2.safetensors", one_tensor("b", "U8", 3, "\x03\x04\x05"));
    write_bytes(folder_ / "model.safetensors.index.json",
                R"({"metadata":{"total_size":5},"weight_map":{"a":"m-1.safetensors","b":")" + second_name + "\"}}");
  }
  TemporaryFolder folder_;
};

TEST_F(TensorSourceTest, ConvertsExactly) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float odd = 1.00390625f + 0x1p-12f;
  EXPECT_EQ(converted<float>("F32", {odd, 0x1p-149f, -0.0f, infinity}),
            (std::vector<float>{odd, 0x1p-149f, 0.0f, infinity}));
  EXPECT_TRUE(std::signbit(converted<float>("F32", {-0.0f})[0]));
  EXPECT_EQ(converted<std::uint16_t>("BF16", {0x3f80, 0xff7f, 0x0001, 0x7f80}),
            (std::vector<float>{1.0f, -0x1.fep127f, 0x1p-133f, infinity}));
  EXPECT_EQ(converted<std::uint16_t>("F16", {0x3c00, 0x0001, 0xfbff, 0x7c00}),
            (std::vector<float>{1.0f, 0x1p-24f, -65504.0f, infinity}));
  EXPECT_TRUE(std::isnan(converted<std::uint16_t>("BF16", {0x7fc1})[0]));
  EXPECT_EQ(converted<double>("F64", {0.1, 1e-300, -1e38, HUGE_VAL}),
            (std::vector<float>{0.1f, 0.0f, -1e38f, infinity}));
  EXPECT_EQ(
      converted<std::int64_t>("I64", {-5, 1 << 24, std::int64_t{1} << 62, std::numeric_limits<std::int64_t>::min()}),
      (std::vector<float>{-5, 0x1p24f, 0x1p62f, -0x1p63f}));
  EXPECT_EQ(converted<std::int32_t>("I32", {-7, 16777218}), (std::vector<float>{-7, 16777218}));
  EXPECT_EQ(converted<std::int16_t>("I16", {-32768, 32767}), (std::vector<float>{-32768, 32767}));
  EXPECT_EQ(converted<std::int8_t>("I8", {-128, 127}), (std::vector<float>{-128, 127}));
  EXPECT_EQ(converted<std::uint8_t>("U8", {0, 255}), (std::vector<float>{0, 255}));
  EXPECT_EQ(converted<std::uint8_t>("BOOL", {0, 1, 7}), (std::vector<float>{0, 1, 1}));
}

TEST_F(TensorSourceTest, RefusesWhatFloatCannotHold) {
  const auto refused = [&](const auto& body) { return error_text(ErrorKind::kData, body); };
  EXPECT_CONTAINS(refused([&] { converted<std::int64_t>("I64", {0, 16777217}); }), "element 1 of 't'");
  EXPECT_CONTAINS(refused([&] { converted<std::int64_t>("I64", {std::numeric_limits<std::int64_t>::max()}); }),
                  "element 0");
  EXPECT_CONTAINS(refused([&] { converted<std::int32_t>("I32", {-16777217}); }), "element 0 of 't'");
  EXPECT_CONTAINS(refused([&] { converted<double>("F64", {1, 1e39}); }), "element 1 of 't'");
}

// CK-15: one file, three dtypes; data is not aligned to the elements either.
TEST_F(TensorSourceTest, MixedDtypes) {
  const float norm = 1.00390625f + 0x1p-12f;
  write_bytes(folder_ / "model.safetensors",
              safetensors_bytes(
                  R"({"pad":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                  R"("norm":{"dtype":"F32","shape":[2],"data_offsets":[1,9]},)"
                  R"("w":{"dtype":"BF16","shape":[1,2],"data_offsets":[9,13]},)"
                  R"("bias":{"dtype":"F16","shape":[1],"data_offsets":[13,15]}})",
                  "p" + raw<float>({norm, 2}) + raw<std::uint16_t>({0x3f80, 0x4040}) + raw<std::uint16_t>({0x3c01})));
  const auto source = open_tensor_folder(folder_.path());
  std::vector<float> two(2), one(1);
  source->read("norm", 0, two);
  EXPECT_EQ(two, (std::vector<float>{norm, 2}));
  source->read("w", 0, two);
  EXPECT_EQ(two, (std::vector<float>{1, 3}));
  source->read("w", 1, one);
  EXPECT_EQ(one[0], 3.0f);
  source->read("bias", 0, one);
  EXPECT_EQ(one[0], 1.0f + 0x1p-10f);
  EXPECT_EQ(source->names(), (std::vector<std::string>{"bias", "norm", "pad", "w"}));
  EXPECT_EQ(source->find("absent"), nullptr);
  EXPECT_EQ(source->where("w"), (folder_ / "model.safetensors").string());
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { source->read("absent", 0, one); }), "'absent'");
  for (const std::int64_t begin : {-1, 1, 3})
    EXPECT_CONTAINS(error_text(ErrorKind::kLogic, [&] { source->read("w", begin, two); }), "'w'");
}

TEST_F(TensorSourceTest, Shards) {
  write_shards("m-2.safetensors");
  const auto source = open_tensor_folder(folder_.path());
  EXPECT_EQ(source->names(), (std::vector<std::string>{"a", "b"}));
  std::vector<float> out(2);
  source->read("b", 1, out);
  EXPECT_EQ(out, (std::vector<float>{4, 5}));
  EXPECT_EQ(source->where("b"), (folder_ / "m-2.safetensors").string());
  // A single file beside the index wins.
  write_bytes(folder_ / "model.safetensors", one_tensor("only", "U8", 1, "x"));
  EXPECT_EQ(open_tensor_folder(folder_.path())->names(), (std::vector<std::string>{"only"}));
}

TEST_F(TensorSourceTest, ShardMissingCK31) {
  write_shards("m-2.safetensors");
  std::filesystem::remove(folder_ / "m-2.safetensors");
  EXPECT_CONTAINS(folder_error(), "m-2.safetensors");
  write_shards("m-1.safetensors");
  EXPECT_CONTAINS(folder_error(), "m-1.safetensors has no tensor 'b'");
}

TEST_F(TensorSourceTest, ShardOutsideTheFolderCK34) {
  TemporaryFolder other;
  write_bytes(other / "secret.safetensors", one_tensor("b", "U8", 1, "s"));
  const std::string up = "../" + other.path().filename().string() + "/secret.safetensors";
  ASSERT_TRUE(std::filesystem::exists(folder_.path() / up));
  for (const std::string& name :
       {up, (other / "secret.safetensors").string(), std::string(".."), std::string("."), std::string(""),
        std::string("sub/m-2.safetensors"), std::string("..\\\\x"), std::string("m-2.safetensors\\u0000")}) {
    write_shards(name);
    EXPECT_CONTAINS(folder_error(), "is refused: it must be a plain name");
  }
  // A link with a plain name is the owner's own doing (the Hugging Face cache consists of them).
  write_shards("link.safetensors");
  std::filesystem::create_symlink(other / "secret.safetensors", folder_ / "link.safetensors");
  EXPECT_EQ(open_tensor_folder(folder_.path())->find("b")->count(), 1);
}

TEST_F(TensorSourceTest, BadIndexFiles) {
  const auto index = folder_ / "model.safetensors.index.json";
  for (const char* text :
       {"", "[]", "{}", R"({"weight_map":[]})", R"({"weight_map":{"a":3}})", R"({"weight_map":)"}) {
    write_bytes(index, text);
    EXPECT_CONTAINS(folder_error(), "model.safetensors.index.json") << text;
  }
}

TEST_F(TensorSourceTest, FoldersWithoutSafetensors) {
  EXPECT_CONTAINS(folder_error(), "neither model.safetensors nor model.safetensors.index.json");
  write_bytes(folder_ / "pytorch_model.bin", "x");
  EXPECT_CONTAINS(folder_error(), "PyTorch pickle files (pytorch_model.bin)");
  write_bytes(folder_ / "other.safetensors", "x");
  EXPECT_CONTAINS(folder_error(), "other.safetensors: rename");
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { open_tensor_folder(folder_ / "absent"); }),
                  "absent is not a folder");
}

TEST_F(TensorSourceTest, SameNameInTwoFiles) {
  write_shards("m-2.safetensors");
  write_bytes(folder_ / "m-2.safetensors", one_tensor("a", "U8", 1, "x"));
  const std::string text = error_text(ErrorKind::kData, [&] {
    open_tensor_files({folder_ / "m-1.safetensors", folder_ / "m-2.safetensors"});
  });
  EXPECT_CONTAINS(text, "m-1.safetensors");
  EXPECT_CONTAINS(text, "m-2.safetensors");
}

TEST_F(TensorSourceTest, Renamed) {
  write_shards("m-2.safetensors");
  const auto source = rename_tensors(open_tensor_folder(folder_.path()), {{"a", "x"}, {"b", ""}, {"absent", "y"}});
  EXPECT_EQ(source->names(), (std::vector<std::string>{"x"}));
  EXPECT_EQ(source->find("a"), nullptr);
  EXPECT_EQ(source->find("b"), nullptr);
  EXPECT_EQ(source->find("x")->count(), 2);
  std::vector<float> out(1);
  source->read("x", 1, out);
  EXPECT_EQ(out[0], 2.0f);
  EXPECT_CONTAINS(source->where("x"), "m-1.safetensors");
  EXPECT_CONTAINS(error_text(ErrorKind::kData, [&] { source->read("a", 0, out); }), "'a'");
  EXPECT_CONTAINS(error_text(ErrorKind::kData,
                             [&] {
                               rename_tensors(open_tensor_folder(folder_.path()), {{"a", "b"}});
                             }),
                  "'b'");
}

}  // namespace
}  // namespace drivetrain
