#include "server/state/folder_lock.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::state {
namespace {

using ::testing::HasSubstr;

std::string NewLockedFolder() {
  std::string pattern = ::testing::TempDir() + "kiln_lock_XXXXXX";
  return mkdtemp(pattern.data());
}

TEST(FolderLock, OneAtATime) {
  const std::string folder = NewLockedFolder();
  auto first = FolderLock::Take(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  // At once, however patient: the holder goes on.
  const auto second = FolderLock::Take(folder, absl::InfiniteDuration());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat("process ", getpid())));
  EXPECT_THAT(second.status().message(), HasSubstr(folder));
  first->reset();
  EXPECT_TRUE(FolderLock::Take(folder).ok());
}

TEST(FolderLock, WaitsForOneThatEnds) {
  const std::string folder = NewLockedFolder();
  auto first = FolderLock::Take(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  (*first)->Ends();
  int pauses = 0;
  const auto end = [&] {
    if (++pauses == 3) first->reset();
  };
  const auto second = FolderLock::Take(folder, absl::InfiniteDuration(), end);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(pauses, 3);
  // The next holder goes on.
  EXPECT_FALSE(FolderLock::Take(folder, absl::InfiniteDuration()).ok());
}

TEST(FolderLock, GivesUpOnOneThatDoesNotEnd) {
  const std::string folder = NewLockedFolder();
  const auto first = FolderLock::Take(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  (*first)->Ends();
  const auto second = FolderLock::Take(folder, absl::Milliseconds(1));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat("process ", getpid())));
}

}  // namespace
}  // namespace kiln::state
