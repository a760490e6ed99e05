#include "server/rpc/doors.h"

#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/auth/accounts.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::rpc {
namespace {

// Those who run the daemon: its own account, and root.
constexpr size_t kAdminsMax = 2;

absl::Status NoPeer() {
  return errors::WithReason(
      absl::PermissionDeniedError(
          "this user of the system has no name, may not use the daemon, or came after too many "
          "others; use a token instead: an admin makes one with `kiln user add NAME`"),
      "NO_PEER");
}

absl::Status TooManyCertificates() {
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the daemon has seen certificates of ", Doors::kCertificatesMax,
          " different names since its start, and takes no more; use a token, or restart kilnd")),
      "TOO_MANY_CERTIFICATES");
}

}  // namespace

Doors::Doors(Options options, grpc::ServerBuilder& builder)
    : options_(std::move(options)),
      port_(MakeDoor(Entrance::kLoopback, builder, options_.on_accepted)),
      tls_port_(MakeDoor(Entrance::kTls, builder, options_.on_accepted)) {
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < kAdminsMax; ++i)
    admins_.doors.push_back(MakeDoor(Entrance::kPeer, builder, [] {}));
  for (size_t i = 0; i <= kSystemUsersMax; ++i)
    system_users_.doors.push_back(MakeDoor(Entrance::kPeer, builder, options_.on_accepted));
  for (size_t i = 0; i <= kCertificatesMax; ++i)
    certificates_.doors.push_back(MakeDoor(Entrance::kCertificate, builder, options_.on_accepted));
  options_.access->SetVisitor(system_users_.doors.back().number, NoPeer());
  options_.access->SetVisitor(certificates_.doors.back().number, TooManyCertificates());
}

// gRPC gets sockets within this process alone. TLS is the relay's.
Doors::Door Doors::MakeDoor(Entrance entrance, grpc::ServerBuilder& builder,
                            std::function<void()> on_accepted) {
  const Access::Door door = options_.access->MakeDoor(entrance, std::move(on_accepted));
  const auto credentials = grpc::experimental::LocalServerCredentials(UDS);
  credentials->SetAuthMetadataProcessor(door.processor);
  using Builder = grpc::ServerBuilder::experimental_type;
  return {door.number, builder.experimental().AddExternalConnectionAcceptor(
                           Builder::ExternalConnectionType::FROM_FD, credentials)};
}

void Doors::HandOver(const relay::Peer& peer, int file) {
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = -1;
  connection.fd = file;
  absl::MutexLock lock(&mutex_);
  DoorOf(peer).acceptor->HandleNewConnection(&connection);
}

const Doors::Door& Doors::DoorOf(const relay::Peer& peer) {
  switch (peer.entrance) {
    case relay::Peer::kPort:
      return port_;
    case relay::Peer::kTlsPort:
      return peer.certificate_name.empty() ? tls_port_ : DoorOfCertificate(peer.certificate_name);
    case relay::Peer::kUnixSocket:
      return DoorOfSystemUser(peer.user_id);
  }
  return port_;
}

absl::StatusOr<auth::Principal> Doors::SystemUser(unsigned user_id) const {
  const auto name = options_.name_of(user_id);
  if (auth::RunsDaemon(user_id)) {
    return auth::Principal{name.value_or(absl::StrCat("uid-", user_id)), auth::Role::kAdmin,
                           "socket"};
  }
  if (!options_.system_users || !name) return NoPeer();
  return auth::Principal{*name, auth::Role::kUser, "socket"};
}

const Doors::Door& Doors::DoorOfSystemUser(unsigned user_id) {
  const bool runs_daemon = auth::RunsDaemon(user_id);
  auto& [doors, door_of] = runs_daemon ? admins_ : system_users_;
  if (const auto known = door_of.find(user_id); known != door_of.end()) return doors[known->second];
  auto user = SystemUser(user_id);
  if (!runs_daemon && (!user.ok() || door_of.size() >= kSystemUsersMax)) {
    log::Warning("peer_refused", {{"uid", absl::StrCat(user_id)}});
    return doors.back();
  }
  const Door& door = doors[door_of.size()];
  door_of.emplace(user_id, door_of.size());
  options_.access->SetVisitor(door.number, *std::move(user));
  return door;
}

const Doors::Door& Doors::DoorOfCertificate(const std::string& name) {
  auto& [doors, door_of] = certificates_;
  if (const auto known = door_of.find(name); known != door_of.end()) return doors[known->second];
  if (door_of.size() >= kCertificatesMax) return doors.back();
  const Door& door = doors[door_of.size()];
  door_of.emplace(name, door_of.size());
  // Which user that is, if any, is looked up for each call.
  options_.access->SetVisitor(door.number, auth::Principal{name, auth::Role::kUser, "certificate"});
  return door;
}

}  // namespace kiln::rpc
