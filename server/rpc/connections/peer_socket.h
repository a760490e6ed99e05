// A Unix socket that identifies its clients: the system reports their user (SO_PEERCRED of
// socket(7)).
#ifndef KILN_SERVER_RPC_CONNECTIONS_PEER_SOCKET_H_
#define KILN_SERVER_RPC_CONNECTIONS_PEER_SOCKET_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/relay/connection.h"
#include "server/rpc/connections/accept_loop.h"
#include "server/rpc/connections/unix_socket.h"

namespace kiln::rpc {

// Used by one thread at a time.
class PeerSocket {
 public:
  // Connections wait until Start, and then go to `take`, which owns them, on a thread of this
  // object. `is_open`: all users of the system may connect, as far as the folder's permissions
  // allow; else only the daemon's own user. Errors: those of SocketClaim::Take; UNAVAILABLE: cannot
  // listen.
  using Take = std::function<void(int file, relay::Peer peer)>;
  static absl::StatusOr<std::unique_ptr<PeerSocket>> Listen(const std::string& path, bool is_open,
                                                            Take take);
  ~PeerSocket() { Stop(); }

  void Start() { loop_.Start(); }
  // Stops accepting connections. Idempotent.
  void Stop() { loop_.Stop(); }

 private:
  PeerSocket(std::unique_ptr<SocketClaim> claim, int socket, Take take)
      : claim_(std::move(claim)),
        take_(std::move(take)),
        loop_({socket}, [this](int, int file) { Accept(file); }) {}
  void Accept(int file);

  const std::unique_ptr<SocketClaim> claim_;
  const Take take_;
  AcceptLoop loop_;  // last: it uses the other members
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_PEER_SOCKET_H_
