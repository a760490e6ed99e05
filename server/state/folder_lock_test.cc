#include "server/state/folder_lock.h"

#include <sched.h>
#include <sys/wait.h>
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
  // Fails at once in spite of the patience, because the holder continues.
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
  // The next holder continues.
  EXPECT_FALSE(FolderLock::Take(folder, absl::InfiniteDuration()).ok());
}

// A daemon forks processes for code that may crash. A newly forked one also holds the lock.
TEST(FolderLock, WaitsForWhatAKilledOneHasForked) {
  const std::string folder = NewLockedFolder();
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t holder = fork();
  if (holder == 0) {
    const auto lock = FolderLock::Take(folder);
    if (lock.ok() && fork() == 0) {
      close(gate[1]);
      char byte;
      static_cast<void>(!read(gate[0], &byte, 1));  // until the test closes the pipe
    }
    _exit(lock.ok() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(holder, &status, 0), holder);
  ASSERT_EQ(status, 0);
  int pauses = 0;
  const auto let_go = [&] {
    if (++pauses == 3) close(gate[1]);
    sched_yield();
  };
  const auto next = FolderLock::Take(folder, absl::InfiniteDuration(), let_go);
  EXPECT_TRUE(next.ok()) << next.status();
  EXPECT_GE(pauses, 3);
  close(gate[0]);
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
