// A Unix socket that knows who connects: it asks the system for each connection's user (SO_PEERCRED
// of socket(7)), which gRPC does not tell, and hands the connection to gRPC by a door of that
// user's.
#ifndef KILN_SERVER_RPC_PEER_SOCKET_H_
#define KILN_SERVER_RPC_PEER_SOCKET_H_

#include <grpcpp/server_builder.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/accept_loop.h"
#include "server/rpc/access.h"
#include "server/rpc/unix_socket.h"

namespace kiln::rpc {

// Who runs the daemon, and root, are admins. Others have the role user under the names that the
// system has for them; who has none is refused, and so is everybody after kMostPeers users.
class PeerSocket {
 public:
  static constexpr int kMostPeers = 64;  // different users while the daemon runs

  struct Options {
    std::string path;
    // Others than who runs the daemon and root may connect, as far as the folder lets them.
    bool system_users = false;
    Access* access = nullptr;  // outlives this
    // A user's name; nothing if the system knows none.
    std::function<std::optional<std::string>(unsigned user_id)> name_of;
  };
  // Listens; connections wait until Start. The errors of SocketClaim::Take. UNAVAILABLE: cannot
  // listen.
  static absl::StatusOr<std::unique_ptr<PeerSocket>> Listen(Options options,
                                                            grpc::ServerBuilder& builder);
  ~PeerSocket() { Stop(); }

  // Once the server has started.
  void Start() { loop_.Start(); }
  // Lets nobody in any more. Before the server ends. Idempotent.
  void Stop() { loop_.Stop(); }

 private:
  struct Slot {
    int door = 0;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  };
  PeerSocket(Options options, std::unique_ptr<SocketClaim> claim, int socket)
      : options_(std::move(options)),
        claim_(std::move(claim)),
        loop_({socket}, [this](int listener, int file) { Take(listener, file); }) {}

  void Take(int listener, int file);
  // The slot of this user; the last one, where everybody is refused, if he has none.
  Slot& SlotOf(unsigned user_id);
  absl::StatusOr<auth::Principal> PrincipalOf(unsigned user_id) const;

  const Options options_;
  const std::unique_ptr<SocketClaim> claim_;
  std::vector<Slot> slots_;
  std::map<unsigned, size_t> slot_of_user_;  // of the accepting thread
  AcceptLoop loop_;                          // last: it uses the rest
};

// From the system's table of users.
std::optional<std::string> SystemUserName(unsigned user_id);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_PEER_SOCKET_H_
