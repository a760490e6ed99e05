// A port.
#ifndef KILN_SERVER_RPC_TCP_SOCKET_H_
#define KILN_SERVER_RPC_TCP_SOCKET_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/relay/connection.h"
#include "server/rpc/accept_loop.h"

namespace kiln::rpc {

// For one thread at a time.
class TcpSocket {
 public:
  // Listens at "host:port", at all addresses that the host has here; port 0 picks a free one.
  // Connections wait until Start, and go to `take`, which owns them then, on a thread of this.
  // UNAVAILABLE: cannot listen, and why.
  using Take = std::function<void(int file, relay::Peer peer)>;
  static absl::StatusOr<std::unique_ptr<TcpSocket>> Listen(const std::string& address, Take take);

  int port() const { return port_; }
  void Start() { loop_.Start(); }
  // Lets nobody in any more. Idempotent.
  void Stop() { loop_.Stop(); }

 private:
  TcpSocket(int port, std::vector<int> listeners, Take take)
      : port_(port),
        take_(std::move(take)),
        loop_(std::move(listeners), [this](int, int file) { Accept(file); }) {}
  void Accept(int file);

  const int port_;
  const Take take_;
  AcceptLoop loop_;  // last: it uses the rest
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_TCP_SOCKET_H_
