#include "server/backup/archive.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::backup {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

bool AnyName(absl::string_view name) { return !name.empty(); }

class ArchiveTest : public ::testing::Test {
 protected:
  ArchiveTest() {
    std::string pattern = ::testing::TempDir() + "kiln_archive_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/archive";
  }
  ~ArchiveTest() override { fs::remove_all(folder_); }

  void Write(const std::vector<std::pair<std::string, std::string>>& files) {
    auto writer = ArchiveWriter::Create(path_, key_);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const auto& [name, content] : files) {
      std::istringstream in(content);
      ASSERT_TRUE((*writer)->Add(name, in, static_cast<int64_t>(content.size())).ok());
    }
    ASSERT_TRUE((*writer)->Finish().ok());
  }
  absl::StatusOr<std::vector<ArchivedFile>> ReadBack(const std::string& key) {
    const std::string to = folder_ + "/to";
    fs::remove_all(to);
    fs::create_directory(to);
    return Extract(path_, key, to, AnyName);
  }
  std::string Bytes(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string key_ = std::string(32, 'k');
  std::string folder_;
  std::string path_;
};

TEST_F(ArchiveTest, WhatIsWrittenIsRead) {
  std::string large(2'500'000, 'x');
  for (size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>(i);
  Write({{"users", "ann and others\n"}, {"cache/large", large}, {"empty", ""}});
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const auto files = ReadBack(key_);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_EQ(files->size(), 3);
  EXPECT_EQ((*files)[1].name, "cache/large");
  EXPECT_EQ(Bytes(folder_ + "/to/users"), "ann and others\n");
  EXPECT_EQ(Bytes(folder_ + "/to/cache/large"), large);
  EXPECT_EQ(Bytes(folder_ + "/to/empty"), "");
  EXPECT_EQ(Bytes(path_).find("ann and others"), std::string::npos);
}

TEST_F(ArchiveTest, AnotherKeyAChangeOrACutIsNoticed) {
  Write({{"users", "ann\n"}, {"quotas", std::string(1'200'000, 'q')}});
  EXPECT_THAT(std::string(ReadBack(std::string(32, 'o')).status().message()),
              HasSubstr("another key"));
  const std::string whole = Bytes(path_);
  for (size_t at = 0; at < whole.size(); at += at < 100 ? 1 : 177'777) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::ofstream(path_, std::ios::binary) << changed;
    EXPECT_EQ(ReadBack(key_).status().code(), absl::StatusCode::kInvalidArgument) << at;
  }
  for (size_t left : {size_t{0}, size_t{5}, size_t{20}, size_t{1'100'000}, whole.size() - 1}) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, left);
    EXPECT_EQ(ReadBack(key_).status().code(), absl::StatusCode::kInvalidArgument) << left;
  }
  std::ofstream(path_, std::ios::binary) << whole << "x";
  EXPECT_THAT(std::string(ReadBack(key_).status().message()), HasSubstr("more after its end"));
}

TEST_F(ArchiveTest, ALaterVersionIsNamed) {
  std::ofstream(path_) << "kiln state 2\n" << std::string(100, 'x');
  EXPECT_THAT(std::string(ReadBack(key_).status().message()),
              HasSubstr("has the format \"kiln state 2\", and this kilnd reads \"kiln state 1\""));
}

TEST_F(ArchiveTest, AnUnfinishedArchiveHasNoName) {
  {
    auto writer = *ArchiveWriter::Create(path_, key_);
    std::istringstream in("ab");
    EXPECT_EQ(writer->Add("short", in, 3).code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ArchiveTest, NamesAreTheCallersChoice) {
  Write({{"users", "ann\n"}});
  fs::create_directory(folder_ + "/to");
  const auto files = Extract(path_, key_, folder_ + "/to", [](absl::string_view) { return false; });
  EXPECT_THAT(std::string(files.status().message()), HasSubstr("does not know"));
  EXPECT_TRUE(fs::is_empty(folder_ + "/to"));
}

}  // namespace
}  // namespace kiln::backup
