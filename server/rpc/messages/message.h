// Messages of streams as raw bytes. If gRPC parsed them itself, an unparseable message would look
// like the end of the stream.
#ifndef KILN_SERVER_RPC_MESSAGES_MESSAGE_H_
#define KILN_SERVER_RPC_MESSAGES_MESSAGE_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::rpc {

// Consumes the bytes. INVALID_ARGUMENT (MALFORMED_MESSAGE) names the expected type.
absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message* message);

// Counts the elements of a repeated message field without parsing them, which would take many times
// their bytes. INVALID_ARGUMENT: the bytes are not a message of `type`, or an element itself has
// elements of that field (NESTED_OPERATIONS).
absl::StatusOr<int> CountFlat(grpc::ByteBuffer& bytes, int field, const std::string& type);

// The error for a message that cannot be parsed as this type.
absl::Status Malformed(const std::string& type);

// Replaces `bytes`.
void Serialize(const google::protobuf::Message& message, grpc::ByteBuffer* bytes);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_MESSAGE_H_
