// How much connections may bring that comes to nothing. gRPC collects a call's headers, which may
// be sent in any number of CONTINUATION frames (RFC 9113, section 6.10), without a bound
// (CVE-2023-33953), and no flow control slows them.
#ifndef KILN_SERVER_RPC_CONNECTION_BOUNDS_H_
#define KILN_SERVER_RPC_CONNECTION_BOUNDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace kiln::rpc {

struct ConnectionBounds {
  // Of a connection none of whose calls was accepted yet: a TLS handshake, a call's headers, and
  // what HTTP/2's first window lets follow them (64 KiB) take a fraction of it.
  int64_t unknown_bytes_max = 256 << 10;
  int64_t unknown_bytes_together_max = 64 << 20;
  // Of another, since a message of it was last complete: for each open call, and once more.
  int64_t call_bytes_max = 64 << 20;
  int64_t bytes_together_max = 256 << 20;
  // Calls at once of all connections of a user, or of all whose user is not known yet. gRPC keeps
  // some 20 KiB for each, and nobody is charged for that.
  int64_t user_calls_max = 8192;
};

struct Traffic {
  bool accepted = false;   // a call of it was, and has begun
  int64_t bytes = 0;       // that came, for one that was accepted since a message was last complete
  int64_t open_calls = 0;  // counts for those that were accepted
  std::string user = {};   // whose call was the first; empty: not known
};

// Those that must end. Of connections that have too much together, those with the most.
// `more_accepted`: so many more were accepted, nobody knows which; those who would end for not
// being accepted have the benefit of the doubt, who has the least first.
std::vector<size_t> BeyondBounds(const ConnectionBounds& bounds,
                                 absl::Span<const Traffic> connections, size_t more_accepted = 0);
// Those that must end because their user has too many calls at once: the ones with the most.
std::vector<size_t> BeyondCalls(const ConnectionBounds& bounds,
                                absl::Span<const Traffic> connections);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_CONNECTION_BOUNDS_H_
