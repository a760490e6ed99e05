// Messages of streams as their bytes. Where gRPC parses them itself, a message that cannot be
// parsed looks like the end of the stream.
#ifndef KILN_SERVER_RPC_MESSAGE_H_
#define KILN_SERVER_RPC_MESSAGE_H_

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::rpc {

// Takes the bytes. INVALID_ARGUMENT (MALFORMED_MESSAGE) says which type they are not of.
absl::Status Parse(grpc::ByteBuffer& bytes, google::protobuf::Message* message);

// How many elements a repeated field of messages has, told without parsing them, which would take
// many times their bytes. INVALID_ARGUMENT: what it holds is no message of `type`, or an element
// has elements of that field in turn (NESTED_OPERATIONS).
absl::StatusOr<int> CountFlat(grpc::ByteBuffer& bytes, int field, const std::string& type);

// The error for a message that cannot be parsed as this type.
absl::Status Malformed(const std::string& type);

// Replaces `bytes`.
void Serialize(const google::protobuf::Message& message, grpc::ByteBuffer* bytes);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGE_H_
