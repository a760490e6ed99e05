// The ways by which connections come to gRPC. gRPC checks a call's credentials by the way that its
// connection came, so each user of the system and each certificate's user has a way of their own.
#ifndef KILN_SERVER_RPC_DOORS_H_
#define KILN_SERVER_RPC_DOORS_H_

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

// Thread-safe after the server's start. Who runs the daemon, and root, are admins on its Unix
// sockets. Others have the role user under the names that the system has for them.
class Doors {
 public:
  // Different users of the system, and different names in certificates, while the daemon runs.
  // Later ones are refused, and told so.
  static constexpr size_t kSystemUsersMax = 64;
  static constexpr size_t kCertificatesMax = 256;

  struct Options {
    // Others than who runs the daemon and root may use Unix sockets, as far as the folder lets
    // them.
    bool system_users = false;
    Access* access = nullptr;  // outlives this
    // A user's name; nothing if the system knows none.
    std::function<std::optional<std::string>(unsigned user_id)> name_of;
    // The first call of a connection was accepted (Access::MakeDoor). Not called for those who run
    // the daemon, whose connections the relay does not know.
    std::function<void()> on_accepted;
  };
  // Before the server's start.
  Doors(Options options, grpc::ServerBuilder& builder);

  // Gives gRPC a socket, which it owns then, of a client that is known to this extent.
  void HandOver(const relay::Peer& peer, int file) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  struct Door {
    int number = 0;
    std::unique_ptr<Acceptor> acceptor;
  };
  // Doors that are opened for one visitor after the other. The last one refuses.
  template <typename Key>
  struct Row {
    std::vector<Door> doors;
    std::map<Key, size_t> door_of;
  };

  Door MakeDoor(Entrance entrance, grpc::ServerBuilder& builder, std::function<void()> on_accepted);
  const Door& DoorOf(const relay::Peer& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Door& DoorOfSystemUser(unsigned user_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Door& DoorOfCertificate(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<auth::Principal> SystemUser(unsigned user_id) const;

  const Options options_;
  Door port_;
  Door tls_port_;
  absl::Mutex mutex_;
  Row<unsigned> admins_ ABSL_GUARDED_BY(mutex_);  // who run the daemon
  Row<unsigned> system_users_ ABSL_GUARDED_BY(mutex_);
  Row<std::string> certificates_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_DOORS_H_
