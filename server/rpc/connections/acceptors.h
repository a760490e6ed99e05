// Hands connections to gRPC: one of gRPC's external acceptors for each identity that a connection
// can have. gRPC tells a call's credentials check only which acceptor the connection came through,
// so each user of the system and each name in a certificate has an acceptor of their own.
#ifndef KILN_SERVER_RPC_CONNECTIONS_ACCEPTORS_H_
#define KILN_SERVER_RPC_CONNECTIONS_ACCEPTORS_H_

#include <grpcpp/server_builder.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/relay/connection.h"
#include "server/rpc/access.h"

namespace kiln::rpc {

// Thread-safe after the server's start. On the daemon's Unix sockets, the account that runs the
// daemon and root are admins. Others have the role user under their names in the system.
class Acceptors {
 public:
  // The maximum number of different users of the system, and of names in certificates, while the
  // daemon runs. Later ones are refused with an error.
  static constexpr size_t kSystemUsersMax = 64;
  static constexpr size_t kCertificatesMax = 256;

  struct Options {
    // Other accounts than the daemon's and root may use Unix sockets, as far as the folder's
    // permissions allow.
    bool system_users = false;
    Access* access = nullptr;  // outlives this
    // Returns a user's name; nothing if the system knows none.
    std::function<std::optional<std::string>(unsigned user_id)> name_of;
    // Called when the first call of a connection is accepted (Access::AddListener). Not called for
    // the daemon's account and root, whose connections do not pass through the relay.
    std::function<void()> on_accepted;
  };
  // Requires: the server has not started.
  Acceptors(Options options, grpc::ServerBuilder& builder);

  // Gives gRPC the socket of a client and its ownership. `peer`: what is known of the client.
  void HandOver(const relay::Peer& peer, int file) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  struct Listener {
    int number = 0;
    std::unique_ptr<Acceptor> acceptor;
  };
  // gRPC takes acceptors only before the server's start. So they are made in advance, and each new
  // peer gets the next one. The last one refuses calls.
  template <typename Key>
  struct Pool {
    // Gives the next acceptor to a new peer. Requires: one is left for it.
    const Listener& Give(const Key& key);
    // Each peer has an acceptor of its own, the first ones.
    void Validate() const;

    std::vector<Listener> listeners;
    std::map<Key, size_t> index_of;
  };

  Listener AddListener(Entrance entrance, grpc::ServerBuilder& builder,
                       std::function<void()> on_accepted);
  const Listener& ListenerOf(const relay::Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Listener& ListenerOfSystemUser(unsigned user_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Listener& ListenerOfCertificate(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<auth::Principal> SystemUser(unsigned user_id) const;

  const Options options_;
  Listener port_;
  Listener tls_port_;
  absl::Mutex mutex_;
  Pool<unsigned> admins_ ABSL_GUARDED_BY(mutex_);  // the daemon's account and root
  Pool<unsigned> system_users_ ABSL_GUARDED_BY(mutex_);
  Pool<std::string> certificates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_ACCEPTORS_H_
