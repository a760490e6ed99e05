#include "server/rpc/connections/acceptors.h"

#include <grpcpp/security/server_credentials.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/auth/accounts.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::rpc {
namespace {

// The accounts that run the daemon: its own, and root.
constexpr size_t kAdminsMax = 2;

absl::Status NoPeer() {
  return errors::WithReason(
      absl::PermissionDeniedError(
          "this system account has no name or may not use the daemon, or too many other accounts "
          "have used it; use a token instead, which an admin makes with `kiln user add NAME`"),
      "NO_PEER");
}

absl::Status TooManyCertificates() {
  return errors::WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "the daemon has seen certificates of ", Acceptors::kCertificatesMax,
          " different names since its start, which is the limit; use a token, or restart kilnd")),
      "TOO_MANY_CERTIFICATES");
}

}  // namespace

template <typename Key>
const Acceptors::Listener& Acceptors::Pool<Key>::Give(const Key& key) {
  const size_t index = index_of.size();
  KILN_CHECK_LT(index, listeners.size());
  const bool is_new = index_of.emplace(key, index).second;
  KILN_CHECK(is_new) << key << " has an acceptor already";
  KILN_VALIDATE(*this, index_of.size());
  return listeners[index];
}

template <typename Key>
void Acceptors::Pool<Key>::Validate() const {
  KILN_CHECK_LE(index_of.size(), listeners.size());
  std::vector<bool> is_given(index_of.size());
  for (const auto& [key, index] : index_of) {
    KILN_CHECK_LT(index, index_of.size()) << key;
    KILN_CHECK(!is_given[index]) << key << " shares its acceptor";
    is_given[index] = true;
  }
}

Acceptors::Acceptors(Options options, grpc::ServerBuilder& builder)
    : options_(std::move(options)),
      port_(AddListener(Entrance::kLoopback, builder, options_.on_accepted)),
      tls_port_(AddListener(Entrance::kTls, builder, options_.on_accepted)) {
  KILN_CHECK(options_.name_of && options_.on_accepted);
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < kAdminsMax; ++i)
    admins_.listeners.push_back(AddListener(Entrance::kPeer, builder, [] {}));
  for (size_t i = 0; i <= kSystemUsersMax; ++i)
    system_users_.listeners.push_back(AddListener(Entrance::kPeer, builder, options_.on_accepted));
  for (size_t i = 0; i <= kCertificatesMax; ++i)
    certificates_.listeners.push_back(
        AddListener(Entrance::kCertificate, builder, options_.on_accepted));
  options_.access->SetPeer(system_users_.listeners.back().number, NoPeer());
  options_.access->SetPeer(certificates_.listeners.back().number, TooManyCertificates());
}

// gRPC gets sockets only from this process. The relay handles TLS.
Acceptors::Listener Acceptors::AddListener(Entrance entrance, grpc::ServerBuilder& builder,
                                           std::function<void()> on_accepted) {
  const Access::Listener listener = options_.access->AddListener(entrance, std::move(on_accepted));
  const auto credentials = grpc::experimental::LocalServerCredentials(UDS);
  credentials->SetAuthMetadataProcessor(listener.processor);
  using Builder = grpc::ServerBuilder::experimental_type;
  return {listener.number, builder.experimental().AddExternalConnectionAcceptor(
                               Builder::ExternalConnectionType::FROM_FD, credentials)};
}

void Acceptors::HandOver(const relay::Peer& peer, int file) {
  Acceptor::NewConnectionParameters connection;
  connection.listener_fd = -1;
  KILN_CHECK_GE(file, 0);
  connection.fd = file;
  absl::MutexLock lock(&mutex_);
  ListenerOf(peer).acceptor->HandleNewConnection(&connection);
}

const Acceptors::Listener& Acceptors::ListenerOf(const relay::Peer& peer) {
  switch (peer.entrance) {
    case relay::Peer::kPort:
      return port_;
    case relay::Peer::kTlsPort:
      return peer.certificate_name.empty() ? tls_port_
                                           : ListenerOfCertificate(peer.certificate_name);
    case relay::Peer::kUnixSocket:
      return ListenerOfSystemUser(peer.user_id);
  }
  return port_;
}

absl::StatusOr<auth::Principal> Acceptors::SystemUser(unsigned user_id) const {
  const auto name = options_.name_of(user_id);
  if (auth::RunsDaemon(user_id)) {
    return auth::Principal{name.value_or(absl::StrCat("uid-", user_id)), auth::Role::kAdmin,
                           "socket"};
  }
  if (!options_.system_users || !name) return NoPeer();
  return auth::Principal{*name, auth::Role::kUser, "socket"};
}

const Acceptors::Listener& Acceptors::ListenerOfSystemUser(unsigned user_id) {
  const bool runs_daemon = auth::RunsDaemon(user_id);
  Pool<unsigned>& pool = runs_daemon ? admins_ : system_users_;
  const auto& [listeners, index_of] = pool;
  if (const auto known = index_of.find(user_id); known != index_of.end())
    return listeners[known->second];
  auto user = SystemUser(user_id);
  if (!runs_daemon && (!user.ok() || index_of.size() >= kSystemUsersMax)) {
    log::Warning("peer_refused", {{"uid", absl::StrCat(user_id)}});
    return listeners.back();
  }
  const Listener& listener = pool.Give(user_id);
  options_.access->SetPeer(listener.number, *std::move(user));
  return listener;
}

const Acceptors::Listener& Acceptors::ListenerOfCertificate(const std::string& name) {
  const auto& [listeners, index_of] = certificates_;
  if (const auto known = index_of.find(name); known != index_of.end())
    return listeners[known->second];
  if (index_of.size() >= kCertificatesMax) return listeners.back();
  const Listener& listener = certificates_.Give(name);
  // The user of that name, if any, is looked up for each call.
  options_.access->SetPeer(listener.number,
                           auth::Principal{name, auth::Role::kUser, "certificate"});
  return listener;
}

}  // namespace kiln::rpc
