// Connections whose clients have not begun to speak. gRPC keeps memory for each connection that it
// knows, and a few hundred silent ones would keep it from answering anybody. So it gets a
// connection when its client has begun HTTP/2: with its preface and its settings (RFC 9113, section
// 3.4).
//
// For connections that bypass the relay, which does the same for all others.
#ifndef KILN_SERVER_RPC_CONNECTIONS_WAITING_ROOM_H_
#define KILN_SERVER_RPC_CONNECTIONS_WAITING_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/relay/connection.h"

namespace kiln::rpc {

// Thread-safe.
class WaitingRoom {
 public:
  struct Options {
    // The connections of one account. If there are more, the one that has waited longest is closed.
    size_t of_account_max = 64;
    // How long a client may take to begin.
    absl::Duration patience = absl::Seconds(20);
    std::function<absl::Time()> now;  // steady
    // Gets a connection whose client has begun, or has sent something else. The bytes are still
    // unread. Called on the room's thread. Takes ownership.
    std::function<void(int file, const relay::Peer& peer)> take;
    // Called when a client is turned out: RESOURCE_EXHAUSTED, or DEADLINE_EXCEEDED. Called on any
    // thread.
    std::function<void(const relay::Peer& peer, const absl::Status& why)> on_refused;
  };
  explicit WaitingRoom(Options options);
  // Closes those that wait.
  ~WaitingRoom() { Stop(); }
  WaitingRoom(const WaitingRoom&) = delete;
  WaitingRoom& operator=(const WaitingRoom&) = delete;

  // Takes ownership of the socket.
  void Add(int file, relay::Peer peer) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes those that wait, and takes no more. Idempotent.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Guest {
    int file = -1;
    relay::Peer peer;
    absl::Time until;
  };
  using Guests = std::map<uint64_t, Guest>;  // by number, so the one that came first is the first

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Looks at a connection that has received something.
  void Look(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  void TurnOutLate() ABSL_LOCKS_EXCLUDED(mutex_);
  int MillisecondsToWait() const ABSL_LOCKS_EXCLUDED(mutex_);
  Guest Remove(Guests::iterator guest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TurnOut(const Guest& guest, const absl::Status& why) const;

  const Options options_;
  const int epoll_;
  const int wake_;  // an eventfd
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  Guests guests_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, size_t> of_account_ ABSL_GUARDED_BY(mutex_);  // all above 0
  std::thread thread_;                                                // last
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_WAITING_ROOM_H_
