// Accepts connections for gRPC, whose own listeners stop permanently once the process is out of
// file descriptors.
#ifndef KILN_SERVER_RPC_CONNECTIONS_ACCEPT_LOOP_H_
#define KILN_SERVER_RPC_CONNECTIONS_ACCEPT_LOOP_H_

#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::rpc {

// Runs on its own thread. While no descriptor is free, connections wait in the system's queue.
class AcceptLoop {
 public:
  // Takes ownership of the connection.
  using Take = std::function<void(int listener, int connection)>;

  // Owns the sockets, which must be listening and non-blocking. Requires: `take` is callable.
  AcceptLoop(std::vector<int> listeners, Take take);
  ~AcceptLoop() { Stop(); }
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  // Called at most once, and not after Stop.
  void Start();
  // Stops accepting connections. Idempotent.
  void Stop();

 private:
  void AcceptAll();

  const std::vector<int> listeners_;
  const Take take_;
  const int wake_;  // an eventfd that ends AcceptAll
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_ACCEPT_LOOP_H_
