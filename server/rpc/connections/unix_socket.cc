#include "server/rpc/connections/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::rpc {
namespace {

absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::exists(folder, error)) return absl::OkStatus();
  std::filesystem::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot make ", folder.string(), ": ", strerror(errno)));
}

// Another user may have created a folder in /tmp before the daemon did.
absl::Status CheckOwner(const std::filesystem::path& folder) {
  struct stat status {};
  if (stat(folder.empty() ? "." : folder.c_str(), &status) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot use ", folder.string(), ": ", strerror(errno)));
  }
  // In a folder with the sticky bit, such as /tmp itself, other users can write but cannot remove
  // the daemon's socket; see inode(7).
  if (status.st_uid == geteuid() || geteuid() == 0 || (status.st_mode & S_ISVTX) != 0)
    return absl::OkStatus();
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0 && status.st_uid == 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the folder of the socket, ", folder.string(),
                   ", belongs to another user; use another --listen"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketClaim>> SocketClaim::Take(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path \"", path, "\" must have 1 to ",
                                                   sizeof(sockaddr_un::sun_path) - 1, " bytes"));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (absl::Status status = MakeFolder(folder); !status.ok()) return status;
  if (absl::Status status = CheckOwner(folder); !status.ok()) return status;
  const std::string lock_path = absl::StrCat(path, ".lock");
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0)
    return absl::UnavailableError(absl::StrCat("cannot open ", lock_path, ": ", strerror(errno)));
  // The system releases the lock when its process ends for any reason, so it cannot be left behind
  // by a killed daemon, as a socket's file can.
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return absl::AlreadyExistsError(absl::StrCat("another kilnd is running on unix:", path,
                                                 "; stop it first, or use another --listen"));
  }
  struct stat status {};
  // The lock is held, so this was left by a killed daemon; bind(2) would fail on it.
  if (lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) {
      close(lock);
      return absl::InvalidArgumentError(
          absl::StrCat(path, " exists and is not a socket; use another --listen"));
    }
    unlink(path.c_str());
  }
  return std::unique_ptr<SocketClaim>(new SocketClaim(path, lock));
}

SocketClaim::~SocketClaim() {
  unlink(path_.c_str());
  // The lock's file is kept: if it were removed, two daemons could lock two files of the same name.
  close(lock_);
}

}  // namespace kiln::rpc
