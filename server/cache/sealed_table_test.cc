// The parts of a sealed table that kernel_cache_test.cc does not use.
#include "server/cache/sealed_table.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::cache {
namespace {

using ::testing::ElementsAre;

class SealedTableTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/kiln_table_XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<SealedTable> Open(int64_t rows_max = 100, int64_t version = 1) {
    return std::make_unique<SealedTable>(SealedTable::Options{.folder = folder_,
                                                              .name = "notes",
                                                              .title = "book of notes",
                                                              .noun = "note",
                                                              .loss = "it is forgotten",
                                                              .version = version,
                                                              .bytes_max = 1 << 20,
                                                              .rows_max = rows_max,
                                                              .now = [this] { return now_; }});
  }
  void ExecuteSql(const std::string& sql) const {
    sqlite3* raw = nullptr;
    ASSERT_EQ(sqlite3_open((folder_ + "/notes.sqlite").c_str(), &raw), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(raw, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
    sqlite3_close(raw);
  }
  static std::vector<std::string> All(SealedTable& table) {
    std::vector<std::string> all;
    EXPECT_EQ(table.ForEach([&](std::string_view value) { all.emplace_back(value); }),
              absl::OkStatus());
    return all;
  }
  void Put(SealedTable& table, const std::string& key, const std::string& value) {
    now_ += absl::Minutes(2);
    EXPECT_EQ(table.Put(key, value), absl::OkStatus());
  }

  std::string folder_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
};

TEST_F(SealedTableTest, ForEachGivesTheLatestUsedFirst) {
  auto table = Open();
  EXPECT_THAT(All(*table), ElementsAre());
  for (const char* key : {"a", "b", "c"}) Put(*table, key, absl::StrCat("value of ", key));
  now_ += absl::Minutes(2);
  std::optional<std::string> value;
  EXPECT_EQ(table->Get("a", &value), SealedTable::Lookup::kHit);
  EXPECT_THAT(All(*table), ElementsAre("value of a", "value of c", "value of b"));
  table.reset();
  EXPECT_THAT(All(*Open()), ElementsAre("value of a", "value of c", "value of b"));
}

TEST_F(SealedTableTest, ForEachLeavesOutRowsWithAWrongSeal) {
  auto table = Open();
  for (const char* key : {"a", "b"}) Put(*table, key, absl::StrCat("value of ", key));
  ExecuteSql("UPDATE notes SET value=zeroblob(50) WHERE used=(SELECT MIN(used) FROM notes)");
  EXPECT_THAT(All(*table), ElementsAre("value of b"));
}

TEST_F(SealedTableTest, PagesMayBeReadWhileTheTableIsUsed) {
  auto table = Open();
  // Two fit a page, and the third one is larger than a page.
  const std::vector<std::string> values = {std::string(400 << 10, 'a'), std::string(400 << 10, 'b'),
                                           std::string(900 << 10, 'c')};
  for (const std::string& value : values) {
    std::vector<std::string> read;
    Put(*table, value.substr(0, 1), value);
    EXPECT_EQ(table->ForEachInPages([&](std::string_view each) {
      read.emplace_back(each);
      // Replaced while it is read, and not read again.
      Put(*table, read.back().substr(0, 1), read.back());
    }),
              absl::OkStatus());
    EXPECT_THAT(read, ::testing::UnorderedElementsAreArray(All(*table)));
  }
}

TEST_F(SealedTableTest, PagesLeaveOutRowsWithAWrongSeal) {
  auto table = Open();
  for (const char* key : {"a", "b"}) Put(*table, key, absl::StrCat("value of ", key));
  ExecuteSql("UPDATE notes SET value=zeroblob(50) WHERE used=(SELECT MIN(used) FROM notes)");
  std::vector<std::string> read;
  EXPECT_EQ(table->ForEachInPages([&](std::string_view value) { read.emplace_back(value); }),
            absl::OkStatus());
  EXPECT_THAT(read, ElementsAre("value of b"));
}

TEST_F(SealedTableTest, TheNumberOfRowsIsBounded) {
  auto table = Open(/*rows_max=*/10);
  for (int i = 0; i < 10; ++i) Put(*table, absl::StrCat(i), absl::StrCat(i));
  EXPECT_EQ(table->GetStatistics().rows, 10);
  Put(*table, "10", "10");
  EXPECT_THAT(All(*table), ElementsAre("10", "9", "8", "7", "6", "5", "4", "3", "2"));
  for (int i = 11; i < 100; ++i) {
    Put(*table, absl::StrCat(i), absl::StrCat(i));
    EXPECT_LE(table->GetStatistics().rows, 10);
  }
  EXPECT_EQ(All(*table)[0], "99");
}

TEST_F(SealedTableTest, ReplacingARowEvictsNone) {
  auto table = Open(/*rows_max=*/3);
  for (const char* key : {"a", "b", "c"}) Put(*table, key, "old");
  for (int i = 0; i < 10; ++i) Put(*table, "c", "new");
  EXPECT_THAT(All(*table), ElementsAre("new", "old", "old"));
}

TEST_F(SealedTableTest, PutSaysWhyARowIsNotWritten) {
  EXPECT_TRUE(absl::IsResourceExhausted(Open()->Put("a", std::string(2 << 20, 'x'))));
  std::ofstream(folder_ + "/file") << "x";
  SealedTable table({.folder = folder_ + "/file",
                     .name = "notes",
                     .title = "book of notes",
                     .noun = "note",
                     .loss = "it is forgotten",
                     .now = [] { return absl::UnixEpoch(); }});
  EXPECT_TRUE(absl::IsUnavailable(table.Put("a", "b")));
  EXPECT_TRUE(absl::IsUnavailable(table.ForEach([](std::string_view) {})));
}

TEST_F(SealedTableTest, EventsAreNamedForTheTable) {
  std::ofstream(folder_ + "/notes.sqlite") << std::string(8192, 'z');
  testing::internal::CaptureStderr();
  Open();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("event=book_of_notes_damaged"));
  std::filesystem::remove(folder_ + "/notes.sqlite");
  ExecuteSql("CREATE TABLE notes(text TEXT); PRAGMA user_version=1");
  testing::internal::CaptureStderr();
  Open();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::ContainsRegex("event=book_of_notes_damaged .*no such column"));
}

// A database of another program, or of another version of Kiln whose table has other columns.
TEST_F(SealedTableTest, ATableWithOtherColumnsIsMovedAside) {
  ExecuteSql("CREATE TABLE notes(text TEXT); PRAGMA user_version=1");
  auto table = Open();
  Put(*table, "a", "b");
  EXPECT_THAT(All(*table), ElementsAre("b"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/notes.sqlite.damaged"));
}

TEST_F(SealedTableTest, TablesOfALaterVersionAreLeftAlone) {
  ExecuteSql("CREATE TABLE notes(text TEXT); PRAGMA user_version=2");
  auto table = Open();
  EXPECT_FALSE(table->Put("a", "b").ok());
  std::optional<std::string> value;
  EXPECT_EQ(table->Get("a", &value), SealedTable::Lookup::kMiss);
  EXPECT_EQ(table->GetStatistics().rows, 0);
  ExecuteSql("INSERT INTO notes(text) VALUES('still there')");
}

}  // namespace
}  // namespace kiln::cache
