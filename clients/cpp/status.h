// Errors of the wire as absl::Status.
#ifndef KILN_CLIENTS_CPP_STATUS_H_
#define KILN_CLIENTS_CPP_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "kiln/v1/error.pb.h"

namespace grpc {
class Status;
}

namespace kiln::client {

// The payload that carries google.rpc.ErrorInfo in an absl::Status.
inline constexpr char kErrorInfoType[] = "type.googleapis.com/google.rpc.ErrorInfo";

// The constant name of an error, such as "SHAPE_MISMATCH"; empty if it has none.
std::string ReasonOf(const absl::Status& status);
// Whether a call failed without the daemon's saying why, so that it may be worth another attempt:
// the network's doing, or that of a daemon that ends in a hurry and cancels what is left. Or the
// daemon says that it is being restarted and keeps its sessions.
bool IsLostConnection(const absl::Status& status);

// A failed call. UNAVAILABLE names `address` and says what to do: it tells the usual mistakes with
// TLS apart.
absl::Status FromGrpc(const grpc::Status& status, const std::string& address);
// An operation's error inside a message.
absl::Status FromProto(const v1::Status& status);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_STATUS_H_
