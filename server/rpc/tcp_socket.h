// A port whose connections are handed to gRPC.
#ifndef KILN_SERVER_RPC_TCP_SOCKET_H_
#define KILN_SERVER_RPC_TCP_SOCKET_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/rpc/accept_loop.h"
#include "server/rpc/connection_watch.h"

namespace kiln::rpc {

// For one thread at a time.
class TcpSocket {
 public:
  // Listens at "host:port", at all addresses that the host has here; port 0 picks a free one.
  // Connections wait until Start; `watch`, which outlives this, looks after them. UNAVAILABLE:
  // cannot listen, and why.
  static absl::StatusOr<std::unique_ptr<TcpSocket>> Listen(
      const std::string& address, const std::shared_ptr<grpc::ServerCredentials>& credentials,
      ConnectionWatch& watch, grpc::ServerBuilder& builder);

  int port() const { return port_; }
  // Once the server has started.
  void Start() { loop_.Start(); }
  // Lets nobody in any more. Before the server ends. Idempotent.
  void Stop() { loop_.Stop(); }

 private:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  TcpSocket(int port, std::vector<int> listeners, std::unique_ptr<Acceptor> acceptor,
            ConnectionWatch& watch)
      : port_(port),
        watch_(watch),
        acceptor_(std::move(acceptor)),
        loop_(std::move(listeners), [this](int listener, int file) { Take(listener, file); }) {}
  void Take(int listener, int file);

  const int port_;
  ConnectionWatch& watch_;
  const std::unique_ptr<Acceptor> acceptor_;
  AcceptLoop loop_;  // last: it uses the acceptor
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_TCP_SOCKET_H_
