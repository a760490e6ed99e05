// Stands between clients and gRPC: every byte of a connection passes through here. So the daemon
// sees how many calls a client begins before gRPC does anything for them, and slows it down; gRPC
// 1.51, which Debian has, would take them all. TLS ends here, too.
//
//   client -- TCP or Unix socket -- Link -- pair of sockets -- gRPC
//
// gRPC's end of each pair has a peer with a unique name (Connection::name), so that a call says by
// its peer() which connection it came on.
#ifndef KILN_SERVER_RELAY_RELAY_H_
#define KILN_SERVER_RELAY_RELAY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/relay/call_budgets.h"
#include "server/relay/connection.h"
#include "server/relay/connection_table.h"
#include "server/relay/tls_context.h"

namespace kiln::relay {

// Thread-safe. The server that takes connections from it outlives it or has stopped.
class Relay {
 public:
  struct Options {
    int threads = 2;  // besides the one on which clients introduce themselves
    // From a connection's begin until the client has said that it speaks HTTP/2.
    absl::Duration handshake = absl::Seconds(20);
    BudgetRates rates = {};
    ConnectionLimits limits = {};
    // Of budgets and deadlines: it does not step (CLOCK_BOOTTIME).
    std::function<absl::Time()> now;
    // On a thread of the relay.
    std::function<void(const ConnectionPointer&, int server_file)> hand_over;
    // A connection ended for a reason of its client's. Its budget or its bytes were of no use.
    std::function<void(const Peer&, const absl::Status&)> on_refused;
  };
  explicit Relay(Options options);
  // Closes all connections.
  ~Relay();

  // Takes over the socket of a client that has just connected. `tls`: null for none.
  void Add(int client_file, Peer peer, TlsContext tls);
  // The connection is this user's: a call of it was accepted.
  void SetUser(Connection& connection, const std::string& user);
  // Closes a connection, whatever is on its way.
  void Abort(const Connection& connection) { Close({connection.number()}); }
  // Hands nothing over any more. Then, when the server has closed its ends, Drain waits until
  // clients have what it sent, or `patience` is over.
  void StopHandingOver() ABSL_LOCKS_EXCLUDED(hand_over_mutex_);
  void Drain(absl::Duration patience);

 private:
  class Loop;

  Loop& LoopOf(uint64_t number) const { return *loops_[number % loops_.size()]; }
  void Close(const std::vector<uint64_t>& numbers);

  const Options options_;
  // Held while the table and the loops learn of a connection, so that both know it when it is
  // closed.
  absl::Mutex add_mutex_;
  ConnectionTable table_;
  CallBudgets budgets_;
  absl::Mutex hand_over_mutex_;  // held while a connection is handed over
  bool hands_over_ ABSL_GUARDED_BY(hand_over_mutex_) = true;
  std::atomic<uint64_t> added_ = 0;
  // Last: their threads use the rest. TLS handshakes and unknown clients are on a thread of their
  // own, so that they delay nobody whose connection is there. It hands on to the others, and ends
  // first.
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<Loop> entrance_;
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_RELAY_H_
