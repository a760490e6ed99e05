#include "server/state/folder_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "server/clock/clock.h"

namespace kiln::state {
namespace {

constexpr char kEnds[] = " ends";
constexpr absl::Duration kLook = absl::Milliseconds(20);

// Returns the holder's text: its process id, and whether it is about to end.
std::string Written(int file) {
  char text[32] = "";
  const ssize_t size = pread(file, text, sizeof(text) - 1, 0);
  return size <= 0 ? "" : std::string(absl::StripAsciiWhitespace(text));
}

// Returns the process that holds the lock, if the file says so.
std::optional<int> HolderOf(int file) {
  const std::string text = Written(file);
  int process = 0;
  if (!absl::SimpleAtoi(absl::StripSuffix(text, kEnds), &process)) return std::nullopt;
  return process;
}

// After a daemon was killed, a process that it has just forked may still have its files, and so the
// lock, for a moment.
bool IsGone(int process) { return kill(process, 0) != 0 && errno == ESRCH; }

bool IsEnding(int file) {
  if (absl::EndsWith(Written(file), kEnds)) return true;
  const auto holder = HolderOf(file);
  return holder && IsGone(*holder);
}

bool Write(int file, const std::string& text) {
  return ftruncate(file, 0) == 0 &&
         pwrite(file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

// Returns false if another process holds the lock.
bool Lock(int file, absl::Duration patience, const std::function<void()>& pause) {
  const absl::Time deadline = SteadyNow() + patience;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (!IsEnding(file) || SteadyNow() > deadline) return false;
    pause();
  }
  return true;
}

}  // namespace

void FolderLock::Pause() { absl::SleepFor(kLook); }

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(const std::string& folder,
                                                             absl::Duration patience,
                                                             const std::function<void()>& pause) {
  const std::string path = folder + "/lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0)
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
  if (!Lock(file, patience, pause)) {
    const auto holder = HolderOf(file);
    const absl::Status taken = absl::AlreadyExistsError(
        absl::StrCat("another kilnd", holder ? absl::StrCat(" (process ", *holder, ")") : "",
                     " is using the state folder ", folder,
                     "; stop it first, or use another folder with --state_dir"));
    close(file);
    return taken;
  }
  // For the message above.
  if (!Write(file, absl::StrCat(getpid(), "\n"))) {
    const int error = errno;
    close(file);
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", strerror(error)));
  }
  return std::unique_ptr<FolderLock>(new FolderLock(file));
}

// If writing fails, the next daemon only does not wait for this process to end.
void FolderLock::Ends() { Write(file_, absl::StrCat(getpid(), kEnds, "\n")); }

FolderLock::~FolderLock() { close(file_); }

}  // namespace kiln::state
