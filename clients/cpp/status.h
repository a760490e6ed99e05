// Converts errors on the wire to absl::Status.
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

// Returns the constant name of an error, such as "SHAPE_MISMATCH"; empty if it has none.
std::string ReasonOf(const absl::Status& status);
// Returns true if a call may be worth retrying: it failed without a reason from the daemon, because
// of the network or because a daemon that stops in a hurry cancels calls, or the daemon says that
// it is restarting and keeps its sessions.
bool IsLostConnection(const absl::Status& status);

// Converts a failed call's status. The message of UNAVAILABLE names `address` and says what to do;
// it distinguishes the usual mistakes with TLS. That of a daemon that has not answered in time
// names it, too, and says what to do.
absl::Status FromGrpc(const grpc::Status& status, const std::string& address);
// Converts an operation's error inside a message.
absl::Status FromProto(const v1::Status& status);

}  // namespace kiln::client

#endif  // KILN_CLIENTS_CPP_STATUS_H_
