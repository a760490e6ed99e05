// Carries the bytes of one connection both ways, and holds the client back when its budget is used
// up.
#ifndef KILN_SERVER_RELAY_LINK_H_
#define KILN_SERVER_RELAY_LINK_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/relay/buffer.h"
#include "server/relay/client_end.h"
#include "server/relay/connection.h"
#include "server/relay/connection_table.h"
#include "server/relay/frame_meter.h"

namespace kiln::relay {

// The events that the link waits for. If all are false, it only waits for `time`.
struct Interest {
  bool client_read = false;
  bool client_write = false;
  bool server_read = false;
  bool server_write = false;
  absl::Time time = absl::InfiniteFuture();

  bool operator==(const Interest&) const = default;
};

// Used by one thread. Bytes for each end wait in a buffer of at most kBufferBytesMax. While that is
// full, the other end is not read, so that its sender is slowed down (back-pressure).
class Link {
 public:
  static constexpr size_t kBufferBytesMax = 256 << 10;
  // A client that exceeds its budget for this long without a break is disconnected.
  static constexpr absl::Duration kHeldMax = absl::Seconds(10);

  struct Options {
    int client_file = -1;  // owned by the link
    uint64_t number = 0;
    TlsContext tls;                  // null: none
    std::string name;                // of the server's end, see Connection
    Peer peer;                       // without a certificate's name
    CallBudgets* budgets = nullptr;  // outlives the link
    // Shared with the connection table.
    std::shared_ptr<ConnectionTable::Activity> activity;
    // The deadline for the client's HTTP/2 preface.
    absl::Time handshake_until = absl::InfiniteFuture();
    // Passes one end of a pair of sockets to gRPC, which then owns it. Called only after the client
    // has sent its preface.
    std::function<void(const ConnectionPointer&, int server_file)> hand_over;
  };
  explicit Link(Options options);
  ~Link();

  // An end has become readable. Both are assumed readable until Advance finds otherwise.
  void ClientIsReadable() { client_drained_ = false; }
  void ServerIsReadable() { server_drained_ = false; }
  // Moves everything that can be moved without blocking. An error means that the connection is
  // over: OUT_OF_RANGE: an end closed it, DEADLINE_EXCEEDED: the client has not sent its preface,
  // UNAUTHENTICATED: TLS failed, INVALID_ARGUMENT: see FrameMeter, RESOURCE_EXHAUSTED: see
  // FrameMeter and kHeldMax, UNAVAILABLE: the process is out of file descriptors.
  absl::Status Advance(absl::Time now);
  // Valid after Advance. May ask to continue at once (`time` is `now` or earlier).
  const Interest& interest() const { return interest_; }

  int client_file() const { return options_.client_file; }
  // -1 until it is handed over.
  int server_file() const { return server_file_; }
  // Null until it is handed over.
  const ConnectionPointer& connection() const { return connection_; }
  const Peer& peer() const { return options_.peer; }
  uint64_t number() const { return options_.number; }

 private:
  absl::Status Introduce(absl::Time now);
  bool IsGreeted(absl::Time now);
  absl::Status HandOver(absl::Time now);
  absl::Status AdmitFrames(absl::Time now);
  bool Admit(const Frame& frame, absl::Time now);
  // Return whether they moved anything.
  bool ReadClient(absl::Time now);
  bool WriteServer();
  bool ReadServer();
  bool WriteClient();
  size_t ReadBytes() const;
  void Linger(absl::Time now);
  void SetInterest(absl::Time now, bool may_go_on);
  void Validate() const;

  const Options options_;
  std::string why_no_tls_;
  const std::unique_ptr<ClientEnd> client_;
  ConnectionPointer connection_;
  int server_file_ = -1;

  FrameMeter meter_;
  Buffer to_server_;
  size_t admitted_bytes_ = 0;  // in to_server_
  absl::Time held_until_ = absl::InfinitePast();
  absl::Time held_since_ = absl::InfiniteFuture();  // without a break
  Buffer to_client_;

  bool is_greeted_ = false;
  bool has_shaken_hands_ = false;
  bool client_drained_ = false;
  bool server_drained_ = false;
  bool client_ended_ = false;
  bool server_reads_ = true;  // false: the client's data is discarded
  bool server_ended_ = false;
  bool said_end_ = false;
  absl::Time close_at_ = absl::InfiniteFuture();  // once the server has ended
  // The events that TLS waits for, possibly of the other direction.
  Io::Outcome read_waits_ = Io::kWantsRead;
  Io::Outcome write_waits_ = Io::kWantsWrite;
  Interest interest_;
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_LINK_H_
