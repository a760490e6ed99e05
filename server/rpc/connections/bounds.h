// Limits for connections whose bytes result in no message. gRPC collects a call's headers, which
// may come in any number of CONTINUATION frames (RFC 9113, section 6.10), without a limit
// (CVE-2023-33953), and flow control does not apply to them.
#ifndef KILN_SERVER_RPC_CONNECTIONS_BOUNDS_H_
#define KILN_SERVER_RPC_CONNECTIONS_BOUNDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace kiln::rpc {

struct ConnectionBounds {
  // For a connection without an accepted call: a TLS handshake, a call's headers, and the first
  // HTTP/2 flow-control window (64 KiB) need only a fraction of this.
  int64_t unknown_bytes_max = 256 << 10;
  int64_t unknown_bytes_together_max = 64 << 20;
  // For other connections, since their last complete message: this much for each open call, plus
  // once more.
  int64_t call_bytes_max = 64 << 20;
  int64_t bytes_together_max = 256 << 20;
  // Concurrent calls on all connections of a user, or of one whose user is not known yet. gRPC uses
  // some 20 KiB for each, which are charged to no account.
  int64_t user_calls_max = 8192;
};

struct Traffic {
  bool accepted = false;   // a call of it was accepted and has begun
  int64_t bytes = 0;       // received; if accepted, since the last complete message
  int64_t open_calls = 0;  // used for accepted ones
  std::string user = {};   // of the first call; empty: unknown
};

// Returns the connections that must be closed. If several exceed a common limit, those with the
// most bytes are chosen. `more_accepted`: this many more connections were accepted, but it is not
// known which; as many of those that would be closed for not being accepted are spared, those with
// the fewest bytes first.
std::vector<size_t> BeyondBounds(const ConnectionBounds& bounds,
                                 absl::Span<const Traffic> connections, size_t more_accepted = 0);
// Returns the connections that must be closed because their user has too many concurrent calls:
// those with the most calls.
std::vector<size_t> BeyondCalls(const ConnectionBounds& bounds,
                                absl::Span<const Traffic> connections);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTIONS_BOUNDS_H_
