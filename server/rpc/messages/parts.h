// The memory that a message will take once it is parsed, computed before it is.
#ifndef KILN_SERVER_RPC_MESSAGES_PARTS_H_
#define KILN_SERVER_RPC_MESSAGES_PARTS_H_

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace kiln::rpc {

// Two bytes on the wire can become a message of some hundred bytes, so the size of the input does
// not bound the parsed size. OK if the parts of a message of this type (messages, strings, list
// elements, unknown fields) would take at most 32 MiB in addition to the message's wire size; those
// of graphs have a separate 384 MiB, more than the largest allowed graph needs. INVALID_ARGUMENT
// (TOO_MANY_PARTS) otherwise. An unparseable message is OK as far as it can be read; the parser
// reports it.
absl::Status CheckParts(grpc::ByteBuffer& bytes, const google::protobuf::Descriptor& type);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_PARTS_H_
