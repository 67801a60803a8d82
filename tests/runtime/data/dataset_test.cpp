#include "runtime/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/ops.h"
#include "tests/runtime/data/data_test_files.h"

namespace drivetrain {
namespace {

using test::Folder;
using test::Ints;
using test::message_of;
using test::read_row;

constexpr std::int32_t kNone = Ops::kIgnore, kEnd = 256;

std::unique_ptr<Dataset> open(const DatasetOptions& options) {
  return open_dataset(options, *make_byte_tokenizer());
}

std::int64_t counted_targets(const Dataset& data, std::int64_t index) {
  const auto row = read_row(data, index);
  return std::count_if(row.targets.begin(), row.targets.end(), [](std::int32_t t) { return t != kNone; });
}

TEST(PackedDataset, CutsDocumentsIntoSamplesAndRestartsInsideThem) {
  const Folder folder;
  // Tokens: a b c END | d END | e f g h END  = 11
  const auto data = open(
      folder.options({folder.write("1.txt", "abc"), folder.write("2.txt", "d"), folder.write("3.txt", "efgh")}, 4));
  ASSERT_EQ(data->tokens(), 11);
  ASSERT_EQ(data->size(), 3);

  const auto first = read_row(*data, 0);
  EXPECT_EQ(first.ids, (Ints{'a', 'b', 'c', kEnd}));
  EXPECT_EQ(first.targets, (Ints{'b', 'c', kEnd, kNone}));
  EXPECT_EQ(first.positions, (Ints{0, 1, 2, 3}));
  EXPECT_EQ(first.doc_starts, (Ints{0, 0, 0, 0}));

  const auto second = read_row(*data, 1);
  EXPECT_EQ(second.ids, (Ints{'d', kEnd, 'e', 'f'}));
  EXPECT_EQ(second.targets, (Ints{kEnd, kNone, 'f', 'g'}));
  EXPECT_EQ(second.positions, (Ints{0, 1, 0, 1}));
  EXPECT_EQ(second.doc_starts, (Ints{0, 0, 2, 2}));

  const auto last = read_row(*data, 2);  // began inside a document; padded
  EXPECT_EQ(last.ids, (Ints{'g', 'h', kEnd, 0}));
  EXPECT_EQ(last.targets, (Ints{'h', kEnd, kNone, kNone}));
  EXPECT_EQ(last.positions, (Ints{0, 1, 2, 0}));
  EXPECT_EQ(last.doc_starts, (Ints{0, 0, 0, 3}));
}

TEST(PackedDataset, EveryTokenButTheDocumentStartsIsATargetOnce) {
  const Folder folder;
  for (std::int64_t seq_len = 1; seq_len <= 14; ++seq_len) {
    const auto data = open(folder.options(
        {folder.write("1.txt", "abc"), folder.write("2.txt", "d"), folder.write("3.txt", "efgh")}, seq_len));
    std::int64_t targets = 0;
    Ints seen;
    for (std::int64_t i = 0; i < data->size(); ++i) {
      EXPECT_EQ(data->target_count(i), counted_targets(*data, i)) << seq_len << " " << i;
      targets += data->target_count(i);
      const auto row = read_row(*data, i);
      for (const std::int32_t t : row.targets) {
        if (t != kNone) seen.push_back(t);
      }
    }
    EXPECT_EQ(targets, 8);
    EXPECT_EQ(seen, (Ints{'b', 'c', kEnd, kEnd, 'f', 'g', 'h', kEnd})) << seq_len;
  }
}

TEST(DocumentDataset, GivesEachDocumentASampleAndCountsTheCutOnes) {
  const Folder folder;
  auto options = folder.options({folder.write("1.txt", "abcdefgh"), folder.write("2.txt", "xyz"),
                                 folder.write("3.txt", "mnop"), folder.write("4.txt", "q")},
                                4);
  options.packing = false;
  const auto data = open(options);
  ASSERT_EQ(data->size(), 4);
  EXPECT_EQ(read_row(*data, 0).ids, (Ints{'a', 'b', 'c', 'd'}));
  EXPECT_EQ(read_row(*data, 0).targets, (Ints{'b', 'c', 'd', 'e'}));
  EXPECT_EQ(read_row(*data, 1).targets, (Ints{'y', 'z', kEnd, kNone}));
  EXPECT_EQ(read_row(*data, 2).targets, (Ints{'n', 'o', 'p', kEnd}));
  EXPECT_EQ(read_row(*data, 3).ids, (Ints{'q', kEnd, 0, 0}));
  EXPECT_EQ(read_row(*data, 3).targets, (Ints{kEnd, kNone, kNone, kNone}));
  EXPECT_EQ(read_row(*data, 3).doc_starts, (Ints{0, 0, 2, 3}));
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(data->target_count(i), counted_targets(*data, i)) << i;
  EXPECT_NE(data->report().find("1 cut"), std::string::npos) << data->report();
}

TEST(Dataset, ReadsFoldersAndPatternsSortedOnce) {
  const Folder folder;
  folder.write("in/b.txt", "b");
  folder.write("in/a.txt", "a");
  folder.write("in/.hidden", "h");
  folder.write("in/deep/c.txt", "c");
  std::filesystem::create_symlink("a.txt", folder.path() / "in/z.txt");
  const auto whole = open(folder.options({(folder.path() / "in").string()}, 8));
  EXPECT_EQ(read_row(*whole, 0).ids, (Ints{'a', kEnd, 'b', kEnd, 'c', kEnd, 0, 0}));
  const auto some = open(folder.options({(folder.path() / "in/*.txt").string()}, 4));
  EXPECT_EQ(read_row(*some, 0).ids, (Ints{'a', kEnd, 'b', kEnd}));
}

TEST(Dataset, ReadsPreTokenisedFiles) {
  const Folder folder;
  const auto u16 = folder.write("a.u16", std::string("\x01\x00\x00\x01\x02\x00\x03\x01", 8));
  const auto data = open(folder.options({u16}, 4));
  EXPECT_EQ(read_row(*data, 0).ids, (Ints{1, kEnd, 2, 0x103}));  // 256 ends a document
  EXPECT_EQ(read_row(*data, 0).targets, (Ints{kEnd, kNone, 0x103, kNone}));
  auto options = folder.options({folder.write("a.bin", std::string("\x01\x00\x01\x00\x02\x00\x00\x00", 8))}, 2);
  options.token_dtype = "u32";
  EXPECT_EQ(read_row(*open(options), 0).ids, (Ints{0x10001, 2}));
}

TEST(Dataset, ATextFileIsItsBytesWithoutTheMark) {
  const Folder folder;
  const auto data = open(folder.options({folder.write("a.txt", "\xEF\xBB\xBFx\r\n")}, 4));
  EXPECT_EQ(read_row(*data, 0).ids, (Ints{'x', '\r', '\n', kEnd}));
}

TEST(Dataset, RefusesWhatCannotTrainNamingIt) {
  const Folder folder;
  const auto fault = [&](const std::string& file) { return message_of([&] { open(folder.options({file}, 4)); }); };
  EXPECT_NE(fault((folder.path() / "none.txt").string()).find("none.txt': no such file"), std::string::npos);
  EXPECT_NE(fault((folder.path() / "*.jsonl").string()).find("matches nothing"), std::string::npos);
  EXPECT_NE(fault(folder.write("empty.txt", "")).find("nothing to train on: 0 records, 1 empty"), std::string::npos);
  EXPECT_NE(fault(folder.write("blank.jsonl", "\n\n")).find("nothing to train on"), std::string::npos);
  EXPECT_NE(fault(folder.write("odd.u16", "abc")).find("3 bytes are no whole number of u16"), std::string::npos);
  EXPECT_NE(fault(folder.write("one.u16", "ab")).find("nothing to predict"), std::string::npos);
  EXPECT_NE(fault(folder.write("x.parquet", "PAR1")).find(".parquet files are not read"), std::string::npos);
  EXPECT_NE(fault(folder.write("w.txt", std::string("\xFF\xFEh\0", 4))).find("UTF-16"), std::string::npos);
  std::filesystem::create_directories(folder.path() / "void");
  EXPECT_NE(fault((folder.path() / "void").string()).find("holds no files"), std::string::npos);
}

// TK-15
TEST(Dataset, NamesATokenBeyondTheEmbedding) {
  const Folder folder;
  auto options = folder.options({folder.write("a.jsonl", "{\"text\":\"ab\"}\n{\"text\":\"a~b\"}\n")}, 4);
  options.vocab_rows = 257;
  EXPECT_NO_THROW(open(options));
  options.vocab_rows = 256;
  EXPECT_NE(message_of([&] { open(options); }).find("a.jsonl:1: token '<|endoftext|>' has id 256"),
            std::string::npos);
  options.vocab_rows = 126;
  EXPECT_NE(message_of([&] { open(options); }).find("embedding has 126 rows"), std::string::npos);
}

// TK-17
TEST(Dataset, LineEndsMarksAndBlankLinesChangeNothing) {
  const Folder folder;
  const std::vector<std::string> records{"{\"text\":\"one\"}", "{\"text\":\"two\\r\\nlines\"}",
                                         "{\"text\":\" three \"}", "{\"id\":4,\"text\":\"f\xC3\xBCnf\"}",
                                         "{\"text\":\"end\"}"};
  const auto joined = [&](const std::string& separator) {
    std::string all;
    for (const auto& record : records) all += record + separator;
    return all;
  };
  const std::string lf = joined("\n");
  const std::vector<std::string> files{lf, joined("\r\n"), "\xEF\xBB\xBF" + lf, joined("\n\n \r\n"),
                                       lf.substr(0, lf.size() - 1)};
  const std::string text =
      "one\xFFtwo\r\nlines\xFF three \xFF"
      "f\xC3\xBCnf\xFF"
      "end\xFF";
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto data = open(folder.options({folder.write(std::to_string(i) + ".jsonl", files[i])}, 64));
    EXPECT_TRUE(data->report().starts_with("5 records, ")) << data->report();
    const auto row = read_row(*data, 0);
    ASSERT_EQ(data->tokens(), static_cast<std::int64_t>(text.size())) << i;
    for (std::size_t t = 0; t < text.size(); ++t) {
      const auto byte = static_cast<unsigned char>(text[t]);
      EXPECT_EQ(row.ids[t], byte == 0xFF ? kEnd : byte) << i << " " << t;
    }
  }
}

// TK-19
TEST(Dataset, BadJsonStopsWithItsLineOrIsSkippedAndCounted) {
  const Folder folder;
  const auto file =
      folder.write("b.jsonl", "{\"text\":\"1\"}\n{\"text\":\"2\"}\n{bad\n{\"text\":\"4\"}\n{\"text\":\"5\"}\n");
  auto options = folder.options({file}, 8);
  const std::string fault = message_of([&] { open(options); });
  EXPECT_NE(fault.find("b.jsonl:3: column 2: not valid JSON"), std::string::npos) << fault;
  options.on_error = "skip";
  const auto data = open(options);
  EXPECT_EQ(data->report(), "4 records, 1 skipped (" + file + ":3), 8 tokens, 1 sequences of 8");
  options.on_error = "stop";  // the cache of the skipping run does not hide the fault
  EXPECT_THROW(open(options), Error);
}

TEST(Dataset, SaysWhatIsWrongWithARecord) {
  const Folder folder;
  const auto fault = [&](const std::string& line) {
    return message_of(
        [&] { open(folder.options({folder.write("r.jsonl", "{\"text\":\"ok\"}\n" + line + "\n")}, 4)); });
  };
  EXPECT_NE(fault("[1]").find("r.jsonl:2: the record is JSON of type array"), std::string::npos);
  EXPECT_NE(fault("{\"prompt\":\"x\",\"answer\":\"y\"}").find("no field \"text\" (fields: answer, prompt)"),
            std::string::npos);
  EXPECT_NE(fault("{\"text\":5}").find("\"text\" is of type number"), std::string::npos);
  EXPECT_NE(fault("{\"text\":null}").find("\"text\" is of type null"), std::string::npos);
  EXPECT_NE(fault("{\"text\":\"\\q\"}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(fault("{\"text\":\"\\ud800\"}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(fault("{\"text\":\"\xFF\"}").find("not valid JSON"), std::string::npos);
  EXPECT_NE(fault("{\"text\":\"a\"} x").find("not valid JSON"), std::string::npos);
  EXPECT_NE(fault("{\"text\":\"a\",\"n\":1e999}").find("not valid JSON"), std::string::npos);
}

// TK-21
TEST(Dataset, AVeryLongLineIsOneRecord) {
  const Folder folder;
  std::string text(8 << 20, 'x');
  for (const std::size_t at : {4095u, 65535u, 131071u}) text.replace(at, 2, "\xC3\xA9");
  const auto file = folder.write("l.jsonl", "{\"text\":\"" + text + "\"}\r\n{\"text\":\"z\"}\r\n");
  auto options = folder.options({file}, 65540);
  options.packing = false;
  const auto data = open(options);
  ASSERT_EQ(data->size(), 2);
  EXPECT_EQ(data->tokens(), static_cast<std::int64_t>(text.size()) + 3);
  EXPECT_NE(data->report().find("1 cut"), std::string::npos);
  const auto row = read_row(*data, 0);
  for (const std::size_t at : {4095u, 65535u}) {
    EXPECT_EQ(row.ids[at], 0xC3);
    EXPECT_EQ(row.ids[at + 1], 0xA9);
  }
}

TEST(SampleOrder, IsAPermutationForEverySizeAndEpoch) {
  for (const std::int64_t size : {1, 2, 3, 5, 7, 10, 64, 65, 1000, 4097}) {
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      const SampleOrder order(size, 7, true);
      std::vector<int> seen(static_cast<std::size_t>(size), 0);
      for (std::int64_t i = 0; i < size; ++i) ++seen[static_cast<std::size_t>(order.at(epoch, i))];
      EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), size);
      EXPECT_EQ(*std::min_element(seen.begin(), seen.end()), 1) << size;
    }
  }
}

TEST(SampleOrder, DependsOnSeedAndEpochAndReachesEveryPlace) {
  const std::int64_t size = 7, epochs = 7000;
  std::vector<std::vector<int>> count(7, std::vector<int>(7, 0));
  const SampleOrder order(size, 3, true);
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t i = 0; i < size; ++i) {
      ++count[static_cast<std::size_t>(i)][static_cast<std::size_t>(order.at(epoch, i))];
    }
  }
  for (const auto& row : count) {
    for (const int n : row) EXPECT_NEAR(n, 1000, 5 * 30);  // 5 sigma
  }
  int same = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    same += SampleOrder(1000, 1, true).at(0, i) == SampleOrder(1000, 2, true).at(0, i) ? 1 : 0;
  }
  EXPECT_LT(same, 20);
  EXPECT_EQ(SampleOrder(1000, 1, false).at(5, 17), 17);
}

}  // namespace
}  // namespace drivetrain
