#include "server/rpc/peer_socket.h"

#include <grpcpp/security/server_credentials.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::rpc {
namespace {

constexpr int kWaiting = 512;  // connections that the system holds until they are accepted

absl::StatusOr<int> ListenAt(const std::string& path, bool system_users) {
  const int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const mode_t mode = system_users ? 0666 : 0600;
  // The mode before anybody can connect: until listen(2), connecting fails.
  if (file >= 0 && bind(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      chmod(path.c_str(), mode) == 0 && listen(file, kWaiting) == 0)
    return file;
  const absl::Status failed =
      absl::UnavailableError(absl::StrCat("cannot listen on unix:", path, ": ", strerror(errno)));
  if (file >= 0) close(file);
  return failed;
}

}  // namespace

std::optional<std::string> SystemUserName(unsigned user_id) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> text(1 << 14);
  if (getpwuid_r(user_id, &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  return std::string(found->pw_name);
}

absl::StatusOr<std::unique_ptr<PeerSocket>> PeerSocket::Listen(Options options,
                                                               grpc::ServerBuilder& builder) {
  auto claim = SocketClaim::Take(options.path);
  if (!claim.ok()) return claim.status();
  const auto file = ListenAt(options.path, options.system_users);
  if (!file.ok()) return file.status();
  std::unique_ptr<PeerSocket> peers(new PeerSocket(std::move(options), *std::move(claim), *file));
  for (int i = 0; i <= kMostPeers; ++i) {
    Access::Door door = peers->options_.access->MakeDoor(Entrance::kPeer);
    auto credentials = grpc::experimental::LocalServerCredentials(UDS);
    credentials->SetAuthMetadataProcessor(door.processor);
    using Builder = grpc::ServerBuilder::experimental_type;
    peers->slots_.push_back(
        {door.number, builder.experimental().AddExternalConnectionAcceptor(
                          Builder::ExternalConnectionType::FROM_FD, credentials)});
  }
  peers->options_.access->SetPeer(
      peers->slots_.back().door,
      errors::WithReason(
          absl::PermissionDeniedError(
              "this user of the system has no name, may not use the daemon, or came after too many "
              "others; use a token instead: an admin makes one with `kiln user add NAME`"),
          "NO_PEER"));
  return peers;
}

void PeerSocket::Take(int listener, int file) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(file, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    close(file);
    return;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = file;
  SlotOf(peer.uid).acceptor->HandleNewConnection(&connection);
}

absl::StatusOr<auth::Principal> PeerSocket::PrincipalOf(unsigned user_id) const {
  const auto name = options_.name_of(user_id);
  if (user_id == geteuid() || user_id == 0) {
    return auth::Principal{name.value_or(absl::StrCat("uid-", user_id)), auth::Role::kAdmin,
                           "socket"};
  }
  if (!options_.system_users || !name) return absl::PermissionDeniedError("no peer");
  return auth::Principal{*name, auth::Role::kUser, "socket"};
}

PeerSocket::Slot& PeerSocket::SlotOf(unsigned user_id) {
  const auto known = slot_of_user_.find(user_id);
  if (known != slot_of_user_.end()) return slots_[known->second];
  auto principal = PrincipalOf(user_id);
  // Two places stay free for those who run the daemon.
  const bool runs_it = principal.ok() && principal->role == auth::Role::kAdmin;
  if (!principal.ok() || slot_of_user_.size() + (runs_it ? 0 : 2) >= kMostPeers) {
    log::Warning("peer_refused", {{"uid", absl::StrCat(user_id)}});
    return slots_.back();
  }
  const size_t slot = slot_of_user_.size();
  slot_of_user_[user_id] = slot;
  options_.access->SetPeer(slots_[slot].door, *std::move(principal));
  return slots_[slot];
}

}  // namespace kiln::rpc
