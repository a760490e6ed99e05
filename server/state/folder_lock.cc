#include "server/state/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace kiln::state {
namespace {

// " (process 123)", if the file says so.
std::string Holder(int file) {
  char text[32] = "";
  const ssize_t size = pread(file, text, sizeof(text) - 1, 0);
  int process = 0;
  if (size <= 0 || !absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &process)) return "";
  return absl::StrCat(" (process ", process, ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0)
    return absl::UnavailableError(absl::StrCat("cannot open ", path, ": ", strerror(errno)));
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    const absl::Status taken = absl::AlreadyExistsError(
        absl::StrCat("another kilnd", Holder(file), " uses the state folder ", folder,
                     "; stop it first, or name another folder with --state_dir"));
    close(file);
    return taken;
  }
  // For the message above.
  const std::string process = absl::StrCat(getpid(), "\n");
  if (ftruncate(file, 0) != 0 || pwrite(file, process.data(), process.size(), 0) < 0) {
    const int error = errno;
    close(file);
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", strerror(error)));
  }
  return std::unique_ptr<FolderLock>(new FolderLock(file));
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace kiln::state
