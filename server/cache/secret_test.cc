#include "server/cache/secret.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::cache {
namespace {

using ::testing::HasSubstr;

class SecretTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = absl::StrCat(testing::TempDir(), "/kiln_secret_XXXXXX");
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/key";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static mode_t ModeOf(const std::string& path) {
    struct stat found {};
    stat(path.c_str(), &found);
    return found.st_mode & 07777;
  }

  std::string folder_;
  std::string path_;
};

TEST_F(SecretTest, IsMadeOnceForItsUserAlone) {
  const auto first = Secret::Open(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(ModeOf(path_), 0600);
  EXPECT_EQ(std::filesystem::file_size(path_), 32);
  EXPECT_EQ(Secret::Open(path_)->Unseal("key", first->Seal("key", "value")), "value");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(SecretTest, OneThatIsNeededIsNotReplaced) {
  EXPECT_EQ(Secret::OpenExisting(path_).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path_));
  const Secret secret = *Secret::Open(path_);
  EXPECT_EQ(Secret::OpenExisting(path_)->Fingerprint(), secret.Fingerprint());
  EXPECT_NE(Secret::Open(folder_ + "/other")->Fingerprint(), secret.Fingerprint());
  std::filesystem::resize_file(path_, 31);
  EXPECT_EQ(Secret::OpenExisting(path_).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(std::filesystem::file_size(path_), 31);
}

TEST_F(SecretTest, UnsealsWhatWasSealedUnderTheSameKeyAlone) {
  const Secret secret = *Secret::Open(path_);
  const std::string sealed = secret.Seal("key", "value");
  EXPECT_EQ(secret.Unseal("key", sealed), "value");
  EXPECT_EQ(secret.Unseal("kez", sealed), std::nullopt);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string forged = sealed;
    forged[i] ^= 1;
    EXPECT_EQ(secret.Unseal("key", forged), std::nullopt) << i;
    EXPECT_EQ(secret.Unseal("key", sealed.substr(0, i)), std::nullopt) << i;
  }
  EXPECT_EQ(secret.Unseal("key", secret.Seal("key", "")), "");
  EXPECT_EQ(Secret::Open(folder_ + "/other")->Unseal("key", sealed), std::nullopt);
}

TEST_F(SecretTest, ADamagedFileIsReplaced) {
  const std::string sealed = Secret::Open(path_)->Seal("key", "value");
  std::filesystem::resize_file(path_, 31);
  const auto replaced = Secret::Open(path_);
  ASSERT_TRUE(replaced.ok()) << replaced.status();
  EXPECT_EQ(std::filesystem::file_size(path_), 32);
  EXPECT_EQ(replaced->Unseal("key", sealed), std::nullopt);
}

TEST_F(SecretTest, AFileThatOthersReadIsRefused) {
  ASSERT_TRUE(Secret::Open(path_).ok());
  chmod(path_.c_str(), 0640);
  const absl::Status status = Secret::Open(path_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has mode 0640"));
  EXPECT_THAT(std::string(status.message()), ::testing::EndsWith("run chmod 0600 " + path_));
}

TEST_F(SecretTest, WhatIsNoFileIsRefused) {
  std::ofstream(folder_ + "/elsewhere") << std::string(32, 'x');
  std::filesystem::create_symlink(folder_ + "/elsewhere", path_);
  EXPECT_FALSE(Secret::Open(path_).ok());
  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Secret::Open(path_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SecretTest, AFolderIsMadePrivate) {
  const std::string deep = folder_ + "/a/b/";
  ASSERT_TRUE(OpenPrivateFolder(deep).ok());
  EXPECT_EQ(ModeOf(deep), 0700);
  EXPECT_TRUE(OpenPrivateFolder(deep).ok());
}

TEST_F(SecretTest, AFolderThatOthersMayEnterIsRefused) {
  for (const mode_t mode : {0755, 0770, 0701}) {
    chmod(folder_.c_str(), mode);
    const absl::Status status = OpenPrivateFolder(folder_);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 0700 " + folder_)) << mode;
  }
}

TEST_F(SecretTest, AnotherUsersFolderIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const std::string theirs = folder_ + "/theirs";
  std::filesystem::create_directory(theirs);
  chmod(theirs.c_str(), 0700);
  ASSERT_EQ(chown(theirs.c_str(), 65534, 65534), 0);
  const absl::Status status = OpenPrivateFolder(theirs);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::AllOf(HasSubstr("belongs to user 65534"), HasSubstr("--state_dir")));
}

// The remedy is about what was named: a key's file, and not a folder.
TEST_F(SecretTest, AFileThatCannotBeUsedIsNamedWithTheRemedy) {
  const std::string missing = folder_ + "/none/key";
  EXPECT_EQ(Secret::Open(missing).status().message(),
            "cannot make " + missing + ": its folder does not exist; make that folder first");
  ASSERT_TRUE(Secret::Open(folder_ + "/key").ok());
  std::filesystem::create_symlink(folder_ + "/key", folder_ + "/link");
  EXPECT_THAT(std::string(Secret::Open(folder_ + "/link").status().message()),
              HasSubstr("is a link, which may lead to another key at any time; name the file"));
  if (geteuid() != 0) return;
  ASSERT_EQ(chown((folder_ + "/key").c_str(), 65534, 65534), 0);
  EXPECT_THAT(std::string(Secret::OpenExisting(folder_ + "/key").status().message()),
              ::testing::EndsWith("if it is the right file, run chown 0 " + folder_ + "/key"));
}

// RFC 4231, test case 2, in pieces.
TEST(AuthenticatorTest, IsHmacSha256) {
  Authenticator authenticator("Jefe");
  authenticator.Update("what do ya want ");
  authenticator.Update("");
  authenticator.Update("for nothing?");
  const std::string tag = authenticator.Finish();
  EXPECT_EQ(absl::BytesToHexString(tag),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(SameTag(tag, tag));
  EXPECT_FALSE(SameTag(tag, tag.substr(1)));
  EXPECT_FALSE(SameTag(tag, std::string(tag.size(), 'x')));
}

}  // namespace
}  // namespace kiln::cache
