#include "server/state/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace kiln::state {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

absl::Status CannotRead(absl::StatusCode code, absl::string_view what, const std::string& path,
                        absl::string_view why) {
  return absl::Status(code, absl::StrCat("cannot read ", what, " ", path, ": ", why));
}

absl::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

absl::Status NotRegular(absl::string_view what, const std::string& path, mode_t mode) {
  return CannotRead(absl::StatusCode::kFailedPrecondition, what, path,
                    absl::StrCat("it is ", KindOf(mode), "; name a regular file"));
}

// Requires: open(2) has just failed.
absl::Status CannotOpen(absl::string_view what, const std::string& path) {
  const int error = errno;
  struct stat found {};
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return CannotRead(absl::StatusCode::kNotFound, what, path,
                        "it does not exist; name a file that does");
    case EACCES:
      return CannotRead(absl::StatusCode::kUnavailable, what, path,
                        absl::StrCat("the account with the number ", geteuid(),
                                     ", which runs kilnd, may not; let it read the file, and "
                                     "enter the folders that lead to it"));
    default:
      // A socket cannot be opened.
      if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
        return NotRegular(what, path, found.st_mode);
      return CannotRead(absl::StatusCode::kUnavailable, what, path, strerror(error));
  }
}

}  // namespace

absl::StatusOr<int> OpenRegularFile(const std::string& path, absl::string_view what) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return CannotOpen(what, path);
  struct stat found {};
  // The open file cannot be exchanged after this, as the one at the path could.
  if (fstat(file, &found) == 0 && S_ISREG(found.st_mode)) return file;
  close(file);
  return NotRegular(what, path, found.st_mode);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, absl::string_view what,
                                          int64_t bytes_max) {
  const auto file = OpenRegularFile(path, what);
  if (!file.ok()) return file.status();
  const auto close_file = absl::MakeCleanup([&] { close(*file); });
  const auto most = static_cast<size_t>(bytes_max);
  std::string text;
  std::string piece(kPieceBytes, '\0');
  // The size that the system reports is zero for files of /proc, and may change.
  while (text.size() <= most) {
    const size_t wanted = std::min(piece.size(), most + 1 - text.size());
    const ssize_t got = read(*file, piece.data(), wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return CannotRead(absl::StatusCode::kUnavailable, what, path, strerror(errno));
    if (got == 0) return text;
    text.append(piece, 0, static_cast<size_t>(got));
  }
  return CannotRead(absl::StatusCode::kResourceExhausted, what, path,
                    absl::StrCat("it has more than ", bytes_max,
                                 " bytes, the most that are read; name the right file"));
}

}  // namespace kiln::state
