#include "server/cache/kernel_cache.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/cache/testing/read_only_folder.h"

namespace kiln::cache {
namespace {

class KernelCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/kiln_cache_XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<KernelCache> Open(int64_t limit = 1 << 20) {
    return std::make_unique<KernelCache>(KernelCache::Options{
        .folder = folder_, .limit_bytes = limit, .now = [this] { return now_; }});
  }
  // Changes the database without the cache's knowledge.
  void Execute(const std::string& sql) const {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &raw), SQLITE_OK);
    sqlite3_busy_timeout(raw, 2000);
    EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    sqlite3_close(raw);
  }
  // A cache with two rows, which counts rejected ones.
  std::unique_ptr<KernelCache> OpenWithTwoRows() {
    auto cache = Open();
    cache->SetObserver([this](KernelCache::Lookup lookup) {
      rejected_ += lookup == KernelCache::Lookup::kRejected ? 1 : 0;
    });
    cache->Put("a", "one");
    cache->Put("b", "two");
    return cache;
  }
  std::string path() const { return folder_ + "/kernels.sqlite"; }

  std::string folder_;
  int rejected_ = 0;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
};

TEST_F(KernelCacheTest, KeepsAcrossRestarts) {
  Open()->Put("key", std::string("a\0b", 3));
  auto cache = Open();
  EXPECT_EQ(cache->Get("key"), std::string("a\0b", 3));
  EXPECT_FALSE(cache->Get("other").has_value());
  const auto statistics = cache->GetStatistics();
  EXPECT_EQ(statistics.kernels, 1);
  EXPECT_EQ(statistics.hits, 1);
  EXPECT_EQ(statistics.misses, 1);
  EXPECT_EQ(statistics.path, path());
}

TEST_F(KernelCacheTest, ReplacesAValue) {
  auto cache = Open();
  cache->Put("key", "old");
  cache->Put("key", "new");
  EXPECT_EQ(cache->Get("key"), "new");
  EXPECT_EQ(cache->GetStatistics().kernels, 1);
}

TEST_F(KernelCacheTest, ClearCounts) {
  auto cache = Open();
  cache->Put("a", "1");
  cache->Put("b", "2");
  EXPECT_EQ(*cache->Clear(), 2);
  EXPECT_FALSE(cache->Get("a").has_value());
}

TEST_F(KernelCacheTest, EvictsTheLeastRecentlyUsed) {
  auto cache = Open(1000);
  const std::string value(168, 'x');  // a row also has two hashes
  for (const char* key : {"a", "b", "c", "d"}) {
    cache->Put(key, value);
    now_ += absl::Minutes(2);
  }
  EXPECT_TRUE(cache->Get("a").has_value());
  now_ += absl::Minutes(2);
  cache->Put("e", value);
  EXPECT_FALSE(cache->Get("b").has_value());
  EXPECT_TRUE(cache->Get("a").has_value());
  EXPECT_TRUE(cache->Get("e").has_value());
  EXPECT_LE(cache->GetStatistics().bytes, 1000);
  cache->Put("too big", std::string(2000, 'x'));
  EXPECT_FALSE(cache->Get("too big").has_value());
  EXPECT_TRUE(cache->Get("e").has_value());
}

TEST_F(KernelCacheTest, DamagedFileIsMovedAside) {
  std::ofstream(path()) << std::string(8192, 'z');
  auto cache = Open();
  cache->Put("key", "value");
  EXPECT_EQ(cache->Get("key"), "value");
  EXPECT_TRUE(std::filesystem::exists(path() + ".damaged"));
}

TEST_F(KernelCacheTest, MayBeDeletedWhileInUse) {
  auto cache = Open();
  cache->Put("key", "value");
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path() + suffix);
  EXPECT_FALSE(cache->Get("key").has_value());
  cache->Put("key", "again");
  EXPECT_EQ(cache->Get("key"), "again");
  cache.reset();
  EXPECT_EQ(Open()->Get("key"), "again");
  std::filesystem::remove_all(folder_);
  auto second = Open();
  std::filesystem::remove_all(folder_);
  second->Put("key", "value");
  EXPECT_EQ(second->Get("key"), "value");
}

TEST_F(KernelCacheTest, TheLogBesideItIsBounded) {
  constexpr int64_t kLimit = 1 << 20;
  auto cache = Open(kLimit);
  int64_t highest = 0;
  for (int i = 0; i < 300; ++i) {
    now_ += absl::Seconds(1);
    cache->Put(absl::StrCat("key", i), std::string(50'000, static_cast<char>('a' + i % 26)));
    highest = std::max(highest, static_cast<int64_t>(std::filesystem::file_size(path() + "-wal")));
  }
  EXPECT_LT(highest, kLimit / 2);
  EXPECT_TRUE(cache->Get("key299").has_value());
}

TEST_F(KernelCacheTest, AReadOnlyCacheIsUsed) {
  Open()->Put("key", "value");
  const int status = InReadOnlyFolder(folder_, [this] {
    auto cache = Open();
    const bool is_used = cache->Get("key") == "value";
    cache->Put("other", "value");
    const bool is_left = !cache->Get("other") && cache->GetStatistics().kernels == 1 &&
                         cache->Clear().status().code() == absl::StatusCode::kFailedPrecondition;
    return is_used ? (is_left ? 0 : 2) : 1;
  });
  if (status == kMayNotMount) GTEST_SKIP() << "this process may not mount";
  EXPECT_EQ(status, 0) << "1: it was not used; 2: it was changed";
  EXPECT_EQ(Open()->Get("key"), "value");
}

// As happens when the clock is set back.
TEST_F(KernelCacheTest, AUseInTheFutureIsNoLatestUseForEver) {
  auto cache = Open(1000);
  now_ += absl::Hours(1000);
  cache->Put("a", std::string(168, 'x'));
  now_ -= absl::Hours(1000);
  EXPECT_TRUE(cache->Get("a").has_value());
  for (const char* key : {"b", "c", "d", "e"}) {
    now_ += absl::Minutes(2);
    cache->Put(key, std::string(168, 'x'));
  }
  EXPECT_FALSE(cache->Get("a").has_value());
}

TEST_F(KernelCacheTest, WorksWithoutAPlace) {
  std::ofstream(folder_ + "/file") << "x";
  KernelCache cache({.folder = folder_ + "/file", .now = [] { return absl::UnixEpoch(); }});
  cache.Put("key", "value");
  EXPECT_FALSE(cache.Get("key").has_value());
  EXPECT_FALSE(cache.Clear().ok());
}

TEST_F(KernelCacheTest, ExchangedRowsAreDropped) {
  auto cache = OpenWithTwoRows();
  Execute(
      "CREATE TEMP TABLE before AS SELECT * FROM kernels;"
      "UPDATE kernels SET value=(SELECT value FROM before WHERE before.key<>kernels.key)");
  EXPECT_FALSE(cache->Get("a").has_value());
  EXPECT_FALSE(cache->Get("b").has_value());
  EXPECT_EQ(rejected_, 2);
  EXPECT_EQ(cache->GetStatistics().kernels, 0);
  cache->Put("a", "again");
  EXPECT_EQ(cache->Get("a"), "again");
}

TEST_F(KernelCacheTest, ForgedAndTruncatedRowsAreDropped) {
  for (const char* value :
       {"x'00'", "x''", "zeroblob(4096)", "substr(value,1,length(value)-1)",
        "CAST(value || x'00' AS BLOB)", "randomblob(length(value))", "'text'", "7"}) {
    auto cache = OpenWithTwoRows();
    rejected_ = 0;
    Execute(absl::StrCat("UPDATE kernels SET value=", value));
    EXPECT_FALSE(cache->Get("a").has_value()) << value;
    EXPECT_EQ(rejected_, 1) << value;
    EXPECT_EQ(cache->GetStatistics().kernels, 1) << value;
  }
}

TEST_F(KernelCacheTest, RowsUnderAnotherSecretAreDropped) {
  OpenWithTwoRows();
  std::filesystem::remove(folder_ + "/kernels.key");
  EXPECT_FALSE(OpenWithTwoRows() == nullptr);  // replaces both rows
  EXPECT_EQ(Open()->Get("a"), "one");
  std::ofstream(folder_ + "/kernels.key") << std::string(32, 'k');
  auto cache = Open();
  EXPECT_FALSE(cache->Get("a").has_value());
  cache->Put("a", "again");
  EXPECT_EQ(Open()->Get("a"), "again");
}

TEST_F(KernelCacheTest, RowsOfEarlierVersionsAreDropped) {
  OpenWithTwoRows();
  Execute("PRAGMA user_version=0");
  EXPECT_EQ(Open()->GetStatistics().kernels, 0);
}

TEST_F(KernelCacheTest, AFolderThatOthersMayEnterHoldsNothing) {
  OpenWithTwoRows();
  chmod(folder_.c_str(), 0755);
  auto cache = Open();
  EXPECT_FALSE(cache->Get("a").has_value());
  cache->Put("c", "three");
  EXPECT_FALSE(cache->Get("c").has_value());
  EXPECT_FALSE(cache->Clear().ok());
  // Checked at each use, so that the remedy needs no restart.
  chmod(folder_.c_str(), 0700);
  EXPECT_EQ(cache->Get("a"), "one");
}

TEST_F(KernelCacheTest, ManyThreads) {
  auto cache = Open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, t] {
      for (int i = 0; i < 50; ++i) {
        cache->Put(absl::StrCat(t, "/", i), absl::StrCat(i));
        EXPECT_EQ(cache->Get(absl::StrCat(t, "/", i)), absl::StrCat(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache->GetStatistics().kernels, 200);
}

TEST_F(KernelCacheTest, TwoDaemonsShareAFile) {
  auto first = Open();
  auto second = Open();
  first->Put("a", "1");
  EXPECT_EQ(second->Get("a"), "1");
}

TEST_F(KernelCacheTest, SurvivesKill) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto cache = Open();
    for (int i = 0;; ++i) {
      cache->Put(absl::StrCat("key", i), std::string(1000, 'v'));
      if (i == 20 && write(pipe_ends[1], "x", 1) != 1) _exit(1);
    }
  }
  char ready;
  ASSERT_EQ(read(pipe_ends[0], &ready, 1), 1);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto cache = Open();
  for (int i = 0; i <= 20; ++i)
    EXPECT_EQ(cache->Get(absl::StrCat("key", i)), std::string(1000, 'v')) << i;
  cache->Put("after", "kill");
  EXPECT_EQ(cache->Get("after"), "kill");
  EXPECT_FALSE(std::filesystem::exists(path() + ".damaged"));
}

}  // namespace
}  // namespace kiln::cache
