// A proxy between clients and gRPC: every byte of a connection passes through here. So the daemon
// sees how many calls a client begins before gRPC does anything for them, and slows the client
// down; gRPC 1.51, which Debian has, would accept them all. TLS also ends here.
//
//   client -- TCP or Unix socket -- Link -- pair of sockets -- gRPC
//
// gRPC's end of each pair has a peer with a unique name (Connection::name), so that a call's peer()
// identifies its connection.
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

// Thread-safe. The server that takes connections from it must outlive it or have stopped.
class Relay {
 public:
  struct Options {
    int threads = 2;  // besides the one for new clients
    // The time from a connection's begin to the client's HTTP/2 preface.
    absl::Duration handshake = absl::Seconds(20);
    BudgetRates rates = {};
    ConnectionLimits limits = {};
    // The clock for budgets and deadlines; it must be monotonic (CLOCK_BOOTTIME).
    std::function<absl::Time()> now;
    // Called on a thread of the relay.
    std::function<void(const ConnectionPointer&, int server_file)> hand_over;
    // Called when the relay ends a connection with an error other than OUT_OF_RANGE (see
    // Link::Advance), so not when an end closed it.
    std::function<void(const Peer&, const absl::Status&)> on_refused;
  };
  explicit Relay(Options options);
  // Closes all connections.
  ~Relay();

  // Takes ownership of the socket of a newly connected client. `tls`: null for none.
  void Add(int client_file, Peer peer, TlsContext tls);
  // Assigns the connection to this user, after a call of it was accepted.
  void SetUser(Connection& connection, const std::string& user);
  // Closes a connection at once; bytes under way are lost.
  void Abort(const Connection& connection) { Close({connection.number()}); }
  // StopHandingOver stops handing connections to gRPC. Drain is called after the server has closed
  // its ends: it waits until clients have its last bytes, for at most `patience`.
  void StopHandingOver() ABSL_LOCKS_EXCLUDED(hand_over_mutex_);
  void Drain(absl::Duration patience);

 private:
  class Loop;

  Loop& LoopOf(uint64_t number) const { return *loops_[number % loops_.size()]; }
  void Close(const std::vector<uint64_t>& numbers);

  const Options options_;
  // Held while a connection is added to the table and the loops, so that closing it finds it in
  // both.
  absl::Mutex add_mutex_;
  ConnectionTable table_;
  CallBudgets budgets_;
  absl::Mutex hand_over_mutex_;  // held while a connection is handed over
  bool hands_over_ ABSL_GUARDED_BY(hand_over_mutex_) = true;
  std::atomic<uint64_t> added_ = 0;
  // Last: their threads use the other members. TLS handshakes and unknown clients have a separate
  // thread, so that they do not delay established connections. It hands links to the others, and
  // ends first.
  std::vector<std::unique_ptr<Loop>> loops_;
  std::unique_ptr<Loop> entrance_;
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_RELAY_H_
