// Accepts connections for gRPC, whose own listeners stop listening for good once the process has no
// file descriptor left.
#ifndef KILN_SERVER_RPC_ACCEPT_LOOP_H_
#define KILN_SERVER_RPC_ACCEPT_LOOP_H_

#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace kiln::rpc {

// On a thread of its own. While there is no descriptor, connections wait in the system's queue.
class AcceptLoop {
 public:
  // Owns the connection from here on.
  using Take = std::function<void(int listener, int connection)>;

  // Owns the sockets, which listen and do not block.
  AcceptLoop(std::vector<int> listeners, Take take);
  ~AcceptLoop() { Stop(); }
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  void Start();
  // Lets nobody in any more. Idempotent.
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

#endif  // KILN_SERVER_RPC_ACCEPT_LOOP_H_
