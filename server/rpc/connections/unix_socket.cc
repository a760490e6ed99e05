#include "server/rpc/connections/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
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
  return absl::UnavailableError(absl::StrCat("cannot make ", folder.string(), ": ", strerror(errno),
                                             "; make that folder, or use another --listen"));
}

// Another user may have created a folder in /tmp before the daemon did.
absl::Status CheckOwner(const std::filesystem::path& folder) {
  struct stat status {};
  if (stat(folder.empty() ? "." : folder.c_str(), &status) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot use ", folder.string(), ": ",
                                               strerror(errno), "; use another --listen"));
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

// Returns whether nothing can ever accept a connection there, because its process has ended.
bool IsDead(const std::string& path) {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  // A live one accepts the connection, or has so many that it is full, or is of another type.
  const bool is_dead = file >= 0 &&
                       connect(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 &&
                       (errno == ECONNREFUSED || errno == ENOENT);
  if (file >= 0) close(file);
  return is_dead;
}

// Removes a socket that a killed daemon of this account has left. Requires: the lock is held, which
// says nothing about programs that do not use it, or whose lock was deleted.
absl::Status RemoveDead(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return absl::OkStatus();
  if (!S_ISSOCK(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " exists and is not a socket; use another --listen"));
  }
  if (!IsDead(path)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "another process, of the account with the number ", status.st_uid,
        ", accepts connections on unix:", path, "; stop it first, or use another --listen"));
  }
  // Also for root: the account may be about to start its daemon again, and expects its socket.
  if (status.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was left by a process of the account with the number ", status.st_uid,
                     "; remove it if that does not come back, or use another --listen"));
  }
  unlink(path.c_str());
  return absl::OkStatus();
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
  // bind(2) would fail on one that is left.
  if (absl::Status status = RemoveDead(path); !status.ok()) {
    close(lock);
    return status;
  }
  return std::unique_ptr<SocketClaim>(new SocketClaim(path, lock));
}

SocketClaim::~SocketClaim() {
  unlink(path_.c_str());
  // The lock's file is kept: if it were removed, two daemons could lock two files of the same name.
  close(lock_);
}

}  // namespace kiln::rpc
