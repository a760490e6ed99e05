// Errors on the wire: canonical code, message, an ErrorInfo with the reason and details of
// server/errors, and a QuotaFailure for errors that state a limit.
#ifndef KILN_SERVER_RPC_MESSAGES_STATUS_H_
#define KILN_SERVER_RPC_MESSAGES_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "kiln/v1/error.pb.h"

namespace kiln::rpc {

// For Result.error. Requires: `status` is not OK.
v1::Status ToProto(const absl::Status& status);
// For the end of a call; details are sent as grpc-status-details-bin. OK gives OK.
grpc::Status ToGrpc(const absl::Status& status);

google::protobuf::Timestamp ToProto(absl::Time time);
absl::Time FromProto(const google::protobuf::Timestamp& proto);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_STATUS_H_
