#include "server/rpc/connections/peer_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace kiln::rpc {
namespace {

constexpr int kWaiting = 512;  // backlog: connections not yet accepted

absl::StatusOr<int> ListenAt(const std::string& path, bool is_open) {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const mode_t mode = is_open ? 0666 : 0600;
  // Sets the mode before anyone can connect: connecting fails until listen(2).
  if (file >= 0 && bind(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      chmod(path.c_str(), mode) == 0 && listen(file, kWaiting) == 0)
    return file;
  const absl::Status failed =
      absl::UnavailableError(absl::StrCat("cannot listen on unix:", path, ": ", strerror(errno)));
  if (file >= 0) close(file);
  return failed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerSocket>> PeerSocket::Listen(const std::string& path,
                                                               bool is_open, Take take) {
  auto claim = SocketClaim::Take(path);
  if (!claim.ok()) return claim.status();
  const auto file = ListenAt(path, is_open);
  if (!file.ok()) return file.status();
  return std::unique_ptr<PeerSocket>(new PeerSocket(*std::move(claim), *file, std::move(take)));
}

void PeerSocket::Accept(int file) {
  ucred user{};
  socklen_t size = sizeof(user);
  if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &user, &size) != 0) {
    close(file);
    return;
  }
  const std::string origin = absl::StrCat("uid=", user.uid);
  take_(file, {.entrance = relay::Peer::kUnixSocket,
               .address = absl::StrCat("unix:", origin),
               .origin = origin,
               .user_id = user.uid,
               .certificate_name = {}});
}

}  // namespace kiln::rpc
