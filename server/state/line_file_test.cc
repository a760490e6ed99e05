#include "server/state/line_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/errors/errors.h"

namespace kiln::state {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string NewFolder() {
  std::string pattern = ::testing::TempDir() + "kiln_lines_XXXXXX";
  return mkdtemp(pattern.data());
}

TEST(LineFile, WhatIsWrittenIsRead) {
  const std::string path = NewFolder() + "/table";
  EXPECT_THAT(*ReadLines(path, "table 1"), IsEmpty());
  ASSERT_TRUE(WriteLines(path, "table 1", {"a b", "", "c"}).ok());
  EXPECT_THAT(*ReadLines(path, "table 1"), ElementsAre("a b", "", "c"));
  ASSERT_TRUE(WriteLines(path, "table 1", {}).ok());
  EXPECT_THAT(*ReadLines(path, "table 1"), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  struct stat file {};
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST(LineFile, AnotherHeaderIsDamage) {
  const std::string path = NewFolder() + "/table";
  ASSERT_TRUE(WriteLines(path, "table 2", {"a"}).ok());
  EXPECT_EQ(ReadLines(path, "table 3").status(), Damaged(path));
  EXPECT_EQ(ReadLines(path, "other 1").status(), Damaged(path));
  const absl::Status newer = ReadLines(path, "table 1").status();
  EXPECT_EQ(newer.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(newer.message()),
              ::testing::HasSubstr("newer version of Kiln: it is \"table 2\", and this version "
                                   "reads \"table 1\""));
  std::ofstream(path).close();
  EXPECT_EQ(ReadLines(path, "table 2").status().code(), absl::StatusCode::kDataLoss);
}

// For any number of missing bytes.
TEST(LineFile, ACutIsDamage) {
  const std::string path = NewFolder() + "/table";
  ASSERT_TRUE(WriteLines(path, "table 1", {"ann", "bob", "cecilia"}).ok());
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path));
  // The last line's newline may be missing, since the content is complete.
  for (int64_t left = size - 2; left >= 0; --left) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(left));
    EXPECT_EQ(ReadLines(path, "table 1").status(), Damaged(path)) << left;
  }
}

TEST(LineFile, AFailureKeepsTheOldFile) {
  const std::string folder = NewFolder();
  const std::string path = folder + "/table";
  ASSERT_TRUE(WriteLines(path, "table 1", {"old"}).ok());
  // A file cannot replace a folder.
  std::filesystem::create_directory(path + ".new");
  const absl::Status failed = WriteLines(path, "table 1", {"new"});
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(errors::Reason(failed), "STATE_FOLDER");
  EXPECT_THAT(*ReadLines(path, "table 1"), ElementsAre("old"));
}

}  // namespace
}  // namespace kiln::state
