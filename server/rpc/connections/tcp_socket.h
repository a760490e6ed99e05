// A TCP port.
#ifndef KILN_SERVER_RPC_CONNECTIONS_TCP_SOCKET_H_
#define KILN_SERVER_RPC_CONNECTIONS_TCP_SOCKET_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/relay/connection.h"
#include "server/rpc/connections/accept_loop.h"

namespace kiln::rpc {

// Used by one thread at a time.
class TcpSocket {
 public:
  // Listens at "host:port", on all of the host's addresses on this machine; port 0 chooses a free
  // one. Connections wait until Start, and then go to `take`, which owns them, on a thread of this
  // object. UNAVAILABLE: cannot listen, with the reason.
  using Take = std::function<void(int file, relay::Peer peer)>;
  static absl::StatusOr<std::unique_ptr<TcpSocket>> Listen(const std::string& address, Take take);

  int port() const { return port_; }
  void Start() { loop_.Start(); }
  // Stops accepting connections. Idempotent.
  void Stop() { loop_.Stop(); }

 private:
  TcpSocket(int port, std::vector<int> listeners, Take take)
      : port_(port),
        take_(std::move(take)),
        loop_(std::move(listeners), [this](int, int file) { Accept(file); }) {}
  void Accept(int file);

  const int port_;
  const Take take_;
  AcceptLoop loop_;  // last: it uses the other members
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_TCP_SOCKET_H_
