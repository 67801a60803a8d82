#include "runtime/data/token_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/runtime/data/data_test_files.h"

namespace drivetrain {
namespace {

using test::Folder;
using test::Ints;
using test::read_row;

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder, const std::string& suffix) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().string().ends_with(suffix)) found.push_back(entry.path());
  }
  return found;
}

// Tokenises like bytes and counts how often it is asked.
class CountingTokenizer final : public Tokenizer {
 public:
  std::vector<std::int32_t> encode(std::string_view text) const override {
    ++calls;
    return bytes_->encode(text);
  }
  std::string decode(const std::vector<std::int32_t>& ids) const override { return bytes_->decode(ids); }
  std::int64_t vocab_size() const override { return bytes_->vocab_size(); }
  std::int32_t end_of_text() const override { return bytes_->end_of_text(); }
  std::string token_text(std::int32_t id) const override { return bytes_->token_text(id); }
  std::string fingerprint() const override { return name; }
  mutable std::atomic<int> calls = 0;
  std::string name = "counting";

 private:
  std::unique_ptr<Tokenizer> bytes_ = make_byte_tokenizer();
};

TEST(TokenCache, KeepsTokensAndDocumentEnds) {
  const Folder folder;
  for (const int token_bytes : {2, 4}) {
    const auto path = folder.path() / "x.bin";
    {
      TokenCacheWriter writer(path, "key", token_bytes);
      writer.append(Ints{1, 2, 65535});
      writer.end_document();
      writer.append(Ints{4});
      writer.end_document();
      CacheStats stats;
      stats.records = 2;
      writer.finish(stats);
    }
    const auto cache = TokenCache::open(path, "key");
    ASSERT_TRUE(cache);
    Ints out(3);
    cache->copy(1, out);
    EXPECT_EQ(out, (Ints{2, 65535, 4}));
    EXPECT_EQ(std::vector<std::uint64_t>(cache->document_ends().begin(), cache->document_ends().end()),
              (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(cache->stats().records, 2);
    EXPECT_FALSE(TokenCache::open(path, "other"));
    EXPECT_THROW(cache->copy(2, out), Error);
  }
}

TEST(TokenCache, RefusesIdsThatDoNotFitAndLeavesNothingBehind) {
  const Folder folder;
  {
    TokenCacheWriter writer(folder.path() / "x.bin", "key", 2);
    EXPECT_THROW(writer.append(Ints{65536}), Error);
    EXPECT_THROW(writer.append(Ints{-1}), Error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(TokenCache, IsUsedAgainForTheSameBytesAndTokenizerOnly) {
  const Folder folder;
  CountingTokenizer tokenizer;
  const auto file = folder.write("a.txt", "hello");
  open_dataset(folder.options({file}, 4), tokenizer);
  open_dataset(folder.options({file}, 2), tokenizer);
  open_dataset(folder.options({folder.write("b.txt", "hello")}, 2), tokenizer);
  EXPECT_EQ(tokenizer.calls, 1);
  folder.write("a.txt", "hellO");
  open_dataset(folder.options({file}, 4), tokenizer);
  EXPECT_EQ(tokenizer.calls, 2);
  tokenizer.name = "other";
  open_dataset(folder.options({file}, 4), tokenizer);
  EXPECT_EQ(tokenizer.calls, 3);
}

TEST(TokenCache, AHalfWrittenOrDamagedOneIsBuiltAgain) {
  const Folder folder;
  CountingTokenizer tokenizer;
  const auto options = folder.options({folder.write("a.txt", "hello world")}, 4);
  open_dataset(options, tokenizer);
  const auto cache = files_in(options.cache_dir, ".bin");
  ASSERT_EQ(cache.size(), 1u);
  const auto size = std::filesystem::file_size(cache[0]);
  int calls = 1;
  for (const std::uintmax_t length : {std::uintmax_t{0}, std::uintmax_t{100}, size - 1}) {
    std::filesystem::resize_file(cache[0], length);
    EXPECT_EQ(read_row(*open_dataset(options, tokenizer), 0).ids, (Ints{'h', 'e', 'l', 'l'}));
    EXPECT_EQ(tokenizer.calls, ++calls) << length;
  }
  std::fstream header(cache[0], std::ios::in | std::ios::out | std::ios::binary);
  header.seekp(8).put(99);  // another version
  header.close();
  open_dataset(options, tokenizer);
  EXPECT_EQ(tokenizer.calls, ++calls);
  open_dataset(options, tokenizer);
  EXPECT_EQ(tokenizer.calls, calls);
}

TEST(TokenCache, RemovesWhatAKilledWriterLeft) {
  const Folder folder;
  const auto options = folder.options({folder.write("a.txt", "hello world")}, 4);
  const auto tokenizer = make_byte_tokenizer();
  open_dataset(options, *tokenizer);
  const auto cache = files_in(options.cache_dir, ".bin").at(0);
  std::filesystem::remove(cache);
  std::ofstream(TokenCacheWriter::temporary_prefix(cache) + "abc123") << "half";
  open_dataset(options, *tokenizer);
  for (const auto& entry : std::filesystem::directory_iterator(options.cache_dir)) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp."), std::string::npos) << entry.path();
  }
}

TEST(TokenCache, ManyAtOnceTokeniseOnce) {
  const Folder folder;
  CountingTokenizer tokenizer;
  const auto options = folder.options({folder.write("a.txt", std::string(100000, 'x'))}, 64);
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { good += open_dataset(options, tokenizer)->tokens() == 100001 ? 1 : 0; });
  }
  threads.clear();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(tokenizer.calls, 1);
}

TEST(TokenCache, AKilledWriterLeavesNoCache) {
  const Folder folder;
  const auto options = folder.options({folder.write("a.txt", std::string(20 << 20, 'x'))}, 64);
  const pid_t child = ::fork();
  if (child == 0) {
    open_dataset(options, *make_byte_tokenizer());
    ::_exit(0);
  }
  ::usleep(20000);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(open_dataset(options, *make_byte_tokenizer())->tokens(), (20 << 20) + 1);
}

}  // namespace
}  // namespace drivetrain
